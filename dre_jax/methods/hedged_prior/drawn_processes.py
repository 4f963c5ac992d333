"""Processes of the task whose hyperparameters are drawn from the generic prior: those of highest evidence predict.

Fits of few trials overfit, and three fixed length scales do not know which columns count, how the response varies near
an edge, or how much of it is noise. Draws do, if there are enough of them: the trials' evidence p(y | theta_r) of R
draws weighs them (importance sampling from the prior), and the S draws of most evidence predict in place of all, with
the weight of all,

    sum over r of p(y | theta_r) / R.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.student import log_student_t_density
from dre_jax.methods.hedged_prior.priors import Trials
from dre_jax.methods.hedged_prior.task_process import (
    LOG_LENGTHSCALE_BOUNDS,
    TaskProcess,
    task_covariance_and_residuals,
)

_COMMON_DEVIATION = 0.7  # of a log factor of all length scales
_SIMILAR = 0.3  # share of the deviation of columns in every second group of draws
_WARP_DEVIATION = 0.75  # of the logarithms of a warp's shapes
_NOISES = (-14.0, 0.0)  # bounds of log E
_SCREENING_TRIALS = 48


def draw_processes(count: int, prior: LengthScalePrior) -> TaskProcess:
    """Returns R processes without a trend, stacked in front of each array; the same in every program.

    Their halves differ in two ways, in all combinations: with warps or without; with length scales that differ much or
    little between columns. Numbers of a column depend on its position alone, so that padding changes nothing.
    """
    n_columns, dtype = prior.mean.shape[-1], prior.mean.dtype
    of_process = np.random.default_rng(0).standard_normal((2, count))
    of_column = [np.random.default_rng([1, column]).standard_normal((3, count)) for column in range(n_columns)]
    normal = np.stack(of_column, axis=-1)  # f64[3, R, D]
    is_warped, is_similar = (np.arange(count) // size % 2 == 1 for size in (1, 2))
    differences = normal[0] * np.where(is_similar, _SIMILAR, 1.0)[:, None]
    warps = _WARP_DEVIATION * np.moveaxis(normal[1:], 0, 1) * is_warped[:, None, None]
    factors, noises = jnp.asarray(_COMMON_DEVIATION * of_process[0], dtype), jnp.asarray(of_process[1], dtype)
    log_lengthscale = prior.mean[None, :] + prior.deviation[None, :] * jnp.asarray(differences, dtype)
    log_lengthscale = log_lengthscale + factors[:, None]
    zero = jnp.zeros(count, dtype)
    return TaskProcess(
        log_lengthscale=jnp.clip(log_lengthscale, *LOG_LENGTHSCALE_BOUNDS),
        log_signal_var=zero,
        log_noise_var=jnp.clip(prior.noise_mean + prior.noise_deviation * noises, *_NOISES),
        trend_weight=zero,
        log_warp=jnp.asarray(warps, dtype),
    )


def select_processes(
    processes: TaskProcess, size: int, trials: Trials, has_spread: Array, degrees_of_freedom: float
) -> tuple[TaskProcess, Array]:
    """Returns the S of R processes with most evidence, and the logarithms of their weights, f[S].

    The weights sum to that of all. Where responses are equal (not ``has_spread``), the evidence is 1, and the first
    processes are selected. After many trials few draws have a weight: the first trials, in the order of evaluation,
    select 2 S draws, and the evidence of the later trials is theirs.
    """
    freedom = jnp.asarray(degrees_of_freedom, trials.y.dtype)

    def evidence_of(processes: TaskProcess, trials: Trials) -> Array:
        def log_evidence(process: TaskProcess) -> Array:
            moments = task_covariance_and_residuals(process, trials)
            return jnp.where(has_spread, log_student_t_density(*moments, trials.where, freedom), 0.0)

        return jax.vmap(log_evidence)(processes)

    first = jax.tree.map(lambda field: field[:_SCREENING_TRIALS], trials)
    evidence = evidence_of(processes, first)
    total = jax.nn.logsumexp(evidence) - jnp.log(jnp.asarray(len(evidence), evidence.dtype))
    evidence, numbers = lax.top_k(evidence, min(2 * size, len(evidence)))
    processes = jax.tree.map(lambda leaf: leaf[numbers], processes)
    if len(trials.where) > _SCREENING_TRIALS:
        of_first, evidence = evidence, evidence_of(processes, trials)
        total = total + jax.nn.logsumexp(evidence) - jax.nn.logsumexp(of_first)
    most, numbers = lax.top_k(evidence, size)
    return jax.tree.map(lambda leaf: leaf[numbers], processes), total + jax.nn.log_softmax(most)
