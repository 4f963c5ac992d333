"""Fits of processes to the trials of a task, and the score of a fitted process by its predictions.

The likelihood of a fitted process is too high, because it is fitted to the same trials. Its predictions therefore score
it (prequential analysis, Dawid 1984). The process is fitted again whenever the history has grown by three tenths (from
64 trials on by a half). The trials after a fit have their density given the trials before it,

    log p(y) = sum over i of log p(y_{n_i + 1 .. n_{i+1}} | y_{1 .. n_i}, theta_i).

This score is comparable to the marginal likelihood of processes with fixed hyperparameters. Each fit starts from the
last one, so that a few steps are enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from dre_jax.gp.length_scale_prior import LengthScalePrior, log_length_scale_prior
from dre_jax.gp.task_process import LOG_LENGTHSCALE_BOUNDS, TaskProcess
from dre_jax.optim.quasi_newton import maximise_in_box
from dre_jax.search.history import History

_NOISES = (-18.0, 0.0)
_FIRST_FIT, _GROWTH, _LATE, _LATE_GROWTH = 4, 1.3, 64, 1.5
_MAX_STEP = 1.0  # of a log hyperparameter
_TOLERANCE = 1e-3  # improvement below which a fit ends
_CAPACITIES = (32, 96, 192)


class Fits(NamedTuple):
    """The last fits of K processes."""

    process: TaskProcess
    """K in front."""
    gain: Float[Array, " K"]
    """The prequential log-density minus the log-density of all trials under the last fit."""


def fit_sequence(
    steps: int, start: TaskProcess, prior: LengthScalePrior, trials: History, degrees_of_freedom: float
) -> Fits:
    """Fits K processes, in front of each array of ``start``, to growing parts of the history.

    Its trials are in the order of their evaluation, and empty slots are last. A fit evaluates ``steps`` points after
    its start; with 0 there are no fits, and the prequential log-density is that of all trials.
    """
    count, fits = jnp.sum(trials.where), Fits(start, jnp.zeros(start.log_noise_var.shape, trials.response.dtype))
    if steps == 0:
        return fits

    def fit(i: Array, fits: Fits, stage: History, sizes: Array) -> Fits:
        where = stage.where & (jnp.arange(stage.where.shape[0]) < sizes[i])
        first = stage._replace(where=where, response=jnp.where(where, stage.response, 0.0))
        process, before, after = _fit(steps, prior, fits.process, first, degrees_of_freedom)
        return Fits(process, fits.gain + before - after)

    for capacity, numbers in refit_sizes(trials.where.shape[0]):
        stage, sizes = jax.tree.map(lambda field, end=capacity: field[:end], trials), jnp.asarray(numbers)
        fits = lax.fori_loop(0, jnp.sum(sizes <= count), partial(fit, stage=stage, sizes=sizes), fits)
    return fits


def refit_sizes(capacity: int) -> Iterator[tuple[int, list[int]]]:
    """Yields capacities and the numbers of trials, up to each capacity, at which processes are fitted."""
    sizes, size = [], float(_FIRST_FIT)
    while size <= capacity:
        sizes.append(int(size))
        size = max(size * (_GROWTH if size < _LATE else _LATE_GROWTH), sizes[-1] + 1)
    last = 0
    for stage in [stage for stage in _CAPACITIES if stage < capacity] + [capacity]:
        stage_sizes = [size for size in sizes if last < size <= stage]
        if stage_sizes:
            yield stage, stage_sizes
        last = stage


def _fit(
    steps: int, prior: LengthScalePrior, start: TaskProcess, trials: History, degrees_of_freedom: float
) -> tuple[TaskProcess, Float[Array, " K"], Float[Array, " K"]]:
    """Returns fitted processes, and the log marginal likelihoods of the initial and of the fitted ones; K in front."""

    def objective(vector: Array) -> Array:
        process = _unpack(vector)
        return process.log_density(trials, degrees_of_freedom) + _log_prior_density(prior, process)

    def value_and_gradient(vectors: Array) -> tuple[Array, Array]:
        return jax.vmap(jax.value_and_grad(objective))(vectors)

    def evidence_of(vectors: Array, density: Array) -> Array:
        return density - jax.vmap(partial(_log_prior_density, prior))(_unpack(vectors))

    vectors = jnp.concatenate([start.log_lengthscale, start.log_noise_var[:, None]], axis=1)
    n_columns = start.log_lengthscale.shape[1]
    low, high = (
        jnp.asarray([lengths] * n_columns + [noise], vectors.dtype)
        for lengths, noise in zip(LOG_LENGTHSCALE_BOUNDS, _NOISES, strict=True)
    )
    vectors = jnp.clip(vectors, low[None, :], high[None, :])
    best = maximise_in_box(
        value_and_gradient,
        vectors,
        low,
        high,
        steps=steps,
        reach=_MAX_STEP,
        tolerance=_TOLERANCE,
    )
    before, after = evidence_of(vectors, best.first), evidence_of(best.points, best.values)
    return _unpack(best.points), before, after


def _unpack(vector: Float[Array, "... hyperparameters"]) -> TaskProcess:
    """Returns processes of D columns without warps."""
    log_lengthscale = vector[..., :-1]
    no_warp = jnp.zeros((*vector.shape[:-1], 2, log_lengthscale.shape[-1]), vector.dtype)
    return TaskProcess(log_lengthscale, vector[..., -1], no_warp)


def _log_prior_density(prior: LengthScalePrior, process: TaskProcess) -> Float[Array, ""]:
    return log_length_scale_prior(prior, process.log_lengthscale, process.log_noise_var)
