"""Gaussian processes of the task alone, fixed or fitted to its trials.

Standardised responses are modelled as

    y(x) = b + s a m(x) + f(x) + noise,    b ~ N(0, 1),  a ~ N(1, A),  f ~ GP(0, F Matern 5/2),  noise ~ N(0, E),

with a length scale for each column and a variance scale of the task that multiplies all variances
(`dre_jax.gp.student`). s is 1 with the learned trend m, and 0 without it. The hyperparameters of a process are fixed,
or fitted to the trials.

The likelihood of a fitted process is too high, because it is fitted to the same trials. A fitted process is therefore
scored by its predictions (prequential analysis, Dawid 1984): it is fitted again whenever the history has grown by three
tenths (from 64 trials on by a half), and the last fit scores the trials since, given those before,

    log p(y) = sum over i of log p(y_{n_i + 1 .. n_{i+1}} | y_{1 .. n_i}, theta_i),

which is comparable to the marginal likelihood of processes with fixed hyperparameters. Each fit starts from the last
one, so that a few steps are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.checks import Checked, NonNegative, Positive
from dre_jax.errors import ConfigError
from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.kernels import matern52, squared_distances
from dre_jax.gp.length_scale_prior import GENERIC_LENGTHSCALE, LengthScalePrior, log_length_scale_prior
from dre_jax.gp.regression import observation_noise
from dre_jax.gp.student import ConditionedStudentT, condition_student_t, log_student_t_density
from dre_jax.methods.hedged_prior.priors import (
    OFFSET_VAR,
    SLOPE_VARIANCE,
    UNINFORMED_LENGTHSCALES,
    UNINFORMED_NOISE_VAR,
    Trials,
    observe,
)
from dre_jax.optim.quasi_newton import maximise_in_box

T = TypeVar("T")

_LENGTHS, _SIGNALS, _NOISES = (-4.0, 4.0), (-6.0, 2.0), (-18.0, 0.0)
_FLAT_DEVIATION = 1e6  # standard deviation of a prior that is flat in effect
_LOG_SIGNAL_MEAN = -1.0  # of log F with a trend; without one the variance scale determines F
_FIRST_FIT, _GROWTH, _LATE, _LATE_GROWTH = 4, 1.3, 64, 1.5
_MAX_STEP = 1.0  # of a log hyperparameter
_TOLERANCE = 1e-3  # improvement below which a fit ends
_CAPACITIES = (32, 96, 192)


@dataclass(frozen=True, kw_only=True)
class TaskProcessConfig(Checked):
    """Settings of the fixed and the fitted processes. Raises `ConfigError` if a number is out of range."""

    lengthscales: tuple[float, ...] = UNINFORMED_LENGTHSCALES
    """Length scales of the fixed processes, which have no trend, in units of the root of the number of columns."""
    noise_var: Positive[float] = UNINFORMED_NOISE_VAR
    """E of the fixed processes, and its initial value in fits."""
    initial_lengthscales: tuple[float, ...] = (0.15, 0.5)
    """Initial length scales of fitted processes without a trend, in units of the square root of the number of columns.
    Their prior is the generic one. One more process has the trend and the prior of past tasks, whose mean it starts
    from."""
    fitted_weight: float = 0.5
    """Total weight of the fitted processes before the first trial; the fixed ones have the remaining weight."""
    steps: NonNegative[int] = 8
    """Maximum number of points that a fit evaluates after its start; 0 disables fits."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.fitted_weight < 1.0:
            raise ConfigError(f"0 < fitted_weight < 1 must hold, but got fitted_weight={self.fitted_weight}")
        for name in ("lengthscales", "initial_lengthscales"):
            if min(getattr(self, name), default=0.0) <= 0:
                raise ConfigError(f"{name} must be one or more positive numbers, but got {getattr(self, name)}")


class TaskProcess(NamedTuple):
    """Hyperparameters of a process."""

    log_lengthscale: Array
    """f[D]"""
    log_signal_var: Array
    """Scalar: log F."""
    log_noise_var: Array
    """Scalar: log E."""
    trend_weight: Array
    """Scalar: s."""


class TaskHyperpriors(NamedTuple):
    """Priors of the hyperparameters of the processes of the task."""

    generic: LengthScalePrior
    """Without past tasks; equal for all columns."""
    learned: LengthScalePrior
    """From past tasks."""

    def pad_columns(self, width: int) -> TaskHyperpriors:
        """Returns priors for more columns, all of which are zero, so that their length scales change no result."""

        def wider(prior: LengthScalePrior) -> LengthScalePrior:
            padding = (0, width - prior.mean.shape[-1])
            return prior._replace(
                mean=jnp.pad(prior.mean, padding, mode="edge"),
                deviation=jnp.pad(prior.deviation, padding, constant_values=_FLAT_DEVIATION),
            )

        return TaskHyperpriors(*map(wider, self))


def fixed_processes(config: TaskProcessConfig, hyperpriors: TaskHyperpriors) -> TaskProcess:
    """Returns the fixed processes, stacked in front of each array."""
    return _stack([_process(hyperpriors.generic, length, config.noise_var) for length in config.lengthscales])


def start_processes(config: TaskProcessConfig, hyperpriors: TaskHyperpriors) -> tuple[TaskProcess, LengthScalePrior]:
    """Returns the initial fitted processes and the prior of each, stacked in front of each array."""
    generic_prior, learned_prior = hyperpriors
    processes = [_process(generic_prior, length, config.noise_var) for length in config.initial_lengthscales]
    with_trend = _process(learned_prior, GENERIC_LENGTHSCALE, 1.0, trend_weight=1.0)
    processes.append(with_trend._replace(log_noise_var=learned_prior.noise_mean))
    return _stack(processes), _stack([*[generic_prior] * (len(processes) - 1), learned_prior])


def _stack(rows: Sequence[T]) -> T:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _process(prior: LengthScalePrior, length: float, noise: float, *, trend_weight: float = 0.0) -> TaskProcess:
    """Returns a process with a prior's mean length scales, multiplied by ``length / GENERIC_LENGTHSCALE``."""
    dtype = prior.mean.dtype
    return TaskProcess(
        prior.mean + math.log(length / GENERIC_LENGTHSCALE),
        jnp.asarray(_LOG_SIGNAL_MEAN if trend_weight else 0.0, dtype),
        jnp.asarray(math.log(noise), dtype),
        jnp.asarray(trend_weight, dtype),
    )


def log_shares(config: TaskProcessConfig, dtype: jnp.dtype) -> Array:
    """Returns the log weights of the processes before the first trial, f[K], fixed ones first."""
    n_fixed, n_fitted = len(config.lengthscales), len(config.initial_lengthscales) + 1
    shares = [(1.0 - config.fitted_weight) / n_fixed] * n_fixed + [config.fitted_weight / n_fitted] * n_fitted
    return jnp.log(jnp.asarray(shares, dtype))


def task_covariance(process: TaskProcess, a: Array, b: Array, trend_a: Array, trend_b: Array) -> Array:
    """Returns the covariance of b + s a m + f at points f[n, D] and f[m, D] with trends f[n] and f[m], f[n, m]."""
    inverse = jnp.exp(-process.log_lengthscale)[None, :]
    signal = jnp.exp(process.log_signal_var) * matern52(squared_distances(a * inverse, b * inverse))
    return OFFSET_VAR + signal + process.trend_weight * SLOPE_VARIANCE * trend_a[:, None] * trend_b[None, :]


def task_variance(process: TaskProcess, trend: Array) -> Array:
    """Returns the diagonal of `task_covariance` at points with trends f[n], f[n]."""
    return OFFSET_VAR + jnp.exp(process.log_signal_var) + process.trend_weight * SLOPE_VARIANCE * trend**2


def task_covariance_and_residuals(process: TaskProcess, trials: Trials) -> tuple[Array, Array]:
    """Returns the covariance of the observations, f[C, C], and the observations minus their prior mean, f[C]."""
    signal = task_covariance(process, trials.x, trials.x, trials.trend, trials.trend)
    return observe(trials, signal, process.trend_weight * trials.trend, process.log_noise_var)


class TaskPosterior(NamedTuple):
    """A process given the trials."""

    process: TaskProcess
    student_t: ConditionedStudentT
    log_density: Array
    """Scalar: log-density of the trials; of a fitted process the prequential one."""

    def moments(self, trials: Trials, new: Array, trend: Array) -> tuple[Array, Array]:
        """Returns the mean and variance at new configurations f[m, D] with trends f[m], two f[m]."""
        cross = task_covariance(self.process, trials.x, new, trials.trend, trend)
        residual, variance = self.student_t.predict(cross, task_variance(self.process, trend))
        return self.process.trend_weight * trend + residual, variance

    def noise_variances(self, known: Array | float = 0.0) -> Array:
        """Returns the noise variances f[K] of K processes, K in front of each array; a known one is added."""
        return (jnp.exp(self.process.log_noise_var) + known) * self.student_t.variance_scale

    def sample(self, trials: Trials, key: Array) -> Callable[[Array, Array], Array]:
        """Samples a function of configurations f[m, D] and their trends f[m] given the trials."""
        prior_key, noise_key = jax.random.split(key)
        function = sample_process_prior(self.process, trials, prior_key)
        noise_var = observation_noise(self.process.log_noise_var, trials.noise_var)
        residual = self.student_t.condition_sample(function(trials.x, trials.trend), noise_var, noise_key)

        def values(rows: Array, trend: Array) -> Array:
            cross = task_covariance(self.process, trials.x, rows, trials.trend, trend)
            return self.process.trend_weight * trend + residual(cross, function(rows, trend))

        return values


def sample_process_prior(process: TaskProcess, trials: Trials, key: Array) -> Callable[[Array, Array], Array]:
    """Samples a function of points f[n, D] and their trends f[n], with mean zero and the covariance of a process."""
    line_key, signal_key = jax.random.split(key)
    offset, slope = jax.random.normal(line_key, (2,), trials.y.dtype)
    slope = slope * jnp.sqrt(process.trend_weight * SLOPE_VARIANCE)
    signal = sample_matern52(trials.x.shape[-1], jnp.exp(process.log_signal_var), signal_key)
    inverse = jnp.exp(-process.log_lengthscale)[None, :]
    return lambda x, trend: math.sqrt(OFFSET_VAR) * offset + slope * trend + signal(x * inverse)


def condition_processes(
    config: TaskProcessConfig, hyperpriors: TaskHyperpriors, trials: Trials, degrees_of_freedom: float
) -> TaskPosterior:
    """Returns all processes given the trials, K in front, fixed ones first."""
    fixed_params = fixed_processes(config, hyperpriors)
    fits = fit_sequence(config, *start_processes(config, hyperpriors), trials, degrees_of_freedom)
    no_gain = jnp.zeros(len(config.lengthscales), trials.y.dtype)
    processes, gain = jax.tree.map(lambda *parts: jnp.concatenate(parts), Fits(fixed_params, no_gain), fits)

    def condition(process: TaskProcess, gain: Array) -> TaskPosterior:
        moments = task_covariance_and_residuals(process, trials)
        student_t = condition_student_t(*moments, trials.where, degrees_of_freedom)
        return TaskPosterior(process, student_t, student_t.log_density + gain)

    return jax.vmap(condition)(processes, gain)


class Fits(NamedTuple):
    """The last fits of K processes."""

    process: TaskProcess
    """K in front."""
    gain: Array
    """f[K]: the prequential log-density minus the log-density of all trials under the last fit."""


def fit_sequence(
    config: TaskProcessConfig, start: TaskProcess, prior: LengthScalePrior, trials: Trials, degrees_of_freedom: float
) -> Fits:
    """Fits K processes, in front of each array of ``start`` and ``prior``, to growing parts of the history.

    Its trials are in the order of their evaluation, and empty slots are last.
    """
    count, fits = jnp.sum(trials.where), Fits(start, jnp.zeros(start.trend_weight.shape, trials.y.dtype))
    if config.steps == 0:  # the prequential log-density is then the log-density of all trials
        return fits

    def fit(i: Array, fits: Fits, stage: Trials, sizes: Array) -> Fits:
        where = stage.where & (jnp.arange(stage.where.shape[0]) < sizes[i])
        first = stage._replace(where=where, y=jnp.where(where, stage.y, 0.0))
        process, before, after = _fit(config, prior, fits.process, first, degrees_of_freedom)
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
    config: TaskProcessConfig, prior: LengthScalePrior, start: TaskProcess, trials: Trials, degrees_of_freedom: float
) -> tuple[TaskProcess, Array, Array]:
    """Returns fitted processes, and the log marginal likelihoods of the initial and of the fitted ones; K in front."""

    def objective(vector: Array, trend_weight: Array, prior: LengthScalePrior) -> Array:
        process = _unpack(vector, trend_weight)
        evidence = log_student_t_density(
            *task_covariance_and_residuals(process, trials),
            trials.where,
            jnp.asarray(degrees_of_freedom, trials.y.dtype),
        )
        return evidence + _log_prior_density(prior, process)

    def value_and_gradient(vectors: Array) -> tuple[Array, Array]:
        return jax.vmap(jax.value_and_grad(objective))(vectors, start.trend_weight, prior)

    def evidence_of(vectors: Array, density: Array) -> Array:
        return density - jax.vmap(_log_prior_density)(prior, _unpack(vectors, start.trend_weight))

    vectors = jnp.concatenate(
        [start.log_lengthscale, start.log_signal_var[:, None], start.log_noise_var[:, None]], axis=1
    )
    n_columns = start.log_lengthscale.shape[1]
    low, high = (
        jnp.asarray([lengths] * n_columns + [signal, noise], vectors.dtype)
        for lengths, signal, noise in zip(_LENGTHS, _SIGNALS, _NOISES, strict=True)
    )
    vectors = jnp.clip(vectors, low[None, :], high[None, :])
    # Without a trend, the variance scale determines F.
    movable = (jnp.arange(n_columns + 2) != n_columns)[None, :] | (start.trend_weight > 0.0)[:, None]
    best = maximise_in_box(
        value_and_gradient,
        vectors,
        low,
        high,
        steps=config.steps,
        reach=_MAX_STEP,
        tolerance=_TOLERANCE,
        movable=movable,
    )
    before, after = evidence_of(vectors, best.first), evidence_of(best.points, best.values)
    return _unpack(best.points, start.trend_weight), before, after


def _unpack(vector: Array, trend_weight: Array) -> TaskProcess:
    """Returns processes with hyperparameters f[..., D + 2] and trend weights f[...]."""
    return TaskProcess(vector[..., :-2], vector[..., -2], vector[..., -1], trend_weight)


def _log_prior_density(prior: LengthScalePrior, process: TaskProcess) -> Array:
    signal = (process.log_signal_var - _LOG_SIGNAL_MEAN) ** 2
    return log_length_scale_prior(prior, process.log_lengthscale, process.log_noise_var) - 0.5 * signal
