"""Processes of a task whose hyperparameters are drawn from the generic prior: those of highest evidence predict.

Fits of few trials overfit. Three fixed length scales do not know which columns count, how the response varies near an
edge, or how much of it is noise. Some of many draws do. The trials' evidence p(y | theta_r) weighs R draws (importance
sampling from the prior). The S draws of most evidence predict in place of all draws, and have the weight of all,

    sum over r of p(y | theta_r) / R.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float

from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.task_process import LOG_LENGTHSCALE_BOUNDS, TaskProcess
from dre_jax.search.history import History

_COMMON_DEVIATION = 0.7  # of a log factor of all length scales
_SIMILAR = 0.3  # share of the deviation of columns in every second group of draws
_WARP_DEVIATION = 0.75  # of the logarithms of a warp's shapes
_NOISES = (-14.0, 0.0)  # bounds of log E
_SCREENING_TRIALS = 48


def draw_processes(count: int, prior: LengthScalePrior) -> TaskProcess:
    """Returns R processes, stacked in front of each array; the same in every program.

    Their halves differ in two ways, in all combinations: with warps or without; with length scales that differ much or
    little between columns. Numbers of a column depend on its position alone, so that padding changes nothing.
    """
    n_columns, dtype = prior.mean.shape[-1], prior.mean.dtype
    process_normal = np.random.default_rng(0).standard_normal((2, count))
    column_normal = [np.random.default_rng([1, column]).standard_normal((3, count)) for column in range(n_columns)]
    normal = np.stack(column_normal, axis=-1)  # f64[3, R, D]
    is_warped, is_similar = (np.arange(count) // size % 2 == 1 for size in (1, 2))
    differences = normal[0] * np.where(is_similar, _SIMILAR, 1.0)[:, None]
    warps = _WARP_DEVIATION * np.moveaxis(normal[1:], 0, 1) * is_warped[:, None, None]
    factors, noises = jnp.asarray(_COMMON_DEVIATION * process_normal[0], dtype), jnp.asarray(process_normal[1], dtype)
    log_lengthscale = prior.mean[None, :] + prior.deviation[None, :] * jnp.asarray(differences, dtype)
    log_lengthscale = log_lengthscale + factors[:, None]
    return TaskProcess(
        log_lengthscale=jnp.clip(log_lengthscale, *LOG_LENGTHSCALE_BOUNDS),
        log_noise_var=jnp.clip(prior.noise_mean + prior.noise_deviation * noises, *_NOISES),
        log_warp=jnp.asarray(warps, dtype),
    )


def select_processes(
    processes: TaskProcess, size: int, trials: History, has_spread: Bool[Array, ""], degrees_of_freedom: float
) -> tuple[TaskProcess, Float[Array, " {size}"]]:
    """Returns the S of R processes with most evidence, and the logarithms of their weights; S is ``size``.

    The weights sum to the weight of all R processes. If all responses are equal (not ``has_spread``), the evidence is
    1, and the first processes are selected. After many trials few draws have a weight. The first trials, in the order
    of evaluation, therefore select 2 S draws, and all trials weigh these.
    """

    def evidence_of(processes: TaskProcess, trials: History) -> Array:
        def log_evidence(process: TaskProcess) -> Array:
            return jnp.where(has_spread, process.log_density(trials, degrees_of_freedom), 0.0)

        return jax.vmap(log_evidence)(processes)

    screening_trials = jax.tree.map(lambda field: field[:_SCREENING_TRIALS], trials)
    evidence = evidence_of(processes, screening_trials)
    total = jax.nn.logsumexp(evidence) - jnp.log(jnp.asarray(len(evidence), evidence.dtype))
    evidence, numbers = lax.top_k(evidence, min(2 * size, len(evidence)))
    processes = jax.tree.map(lambda leaf: leaf[numbers], processes)
    if len(trials.where) > _SCREENING_TRIALS:
        screening_evidence, evidence = evidence, evidence_of(processes, trials)
        total = total + jax.nn.logsumexp(evidence) - jax.nn.logsumexp(screening_evidence)
    evidence, numbers = lax.top_k(evidence, size)
    return jax.tree.map(lambda leaf: leaf[numbers], processes), total + jax.nn.log_softmax(evidence)
