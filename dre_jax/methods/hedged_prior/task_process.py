"""Gaussian processes that know the task at hand by its own trials.

Standardised responses are modelled as

    y(x) = b + s a m(x) + f(x) + noise,    b ~ N(0, 1),  a ~ N(1, A),  f ~ GP(0, F Matern 5/2),  noise ~ N(0, E),

with a length scale for each column, and all variances times a scale of the task's own (`student`); s is 1 or 0: with
the trend m that past tasks have in common, or without. The hyperparameters of a process are fixed, or fitted to the
trials.

A fit explains the trials that it was made to, so its likelihood says too much for it. A fitted process is therefore
scored by what it predicted (Dawid 1984, prequential analysis): it is fitted anew whenever the history has grown by
three tenths (from 64 trials on by a half), and the trials in between are scored given those before, by the last fit,

    log p(y) = sum over i of log p(y_{n_i + 1 .. n_{i+1}} | y_{1 .. n_i}, theta_i),

which compares with the evidence of processes whose hyperparameters are fixed. Each fit starts from the one before, so
that a few steps are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.checks import at_least, positive
from dre_jax.errors import ConfigError
from dre_jax.gp.kernels import matern52, squared_distances
from dre_jax.gp.regression import ConditionedGP, add_noise
from dre_jax.gp.student import condition_student_t, log_student_t_density
from dre_jax.methods.hedged_prior.length_scale_prior import USUAL_LENGTH, LengthScalePrior, log_prior
from dre_jax.methods.hedged_prior.prior import OFFSET, PLAIN_LENGTHS, PLAIN_NOISE
from dre_jax.optim.quasi_newton import maximise_in_box

T = TypeVar("T")

SLOPE_VARIANCE = 0.1
"""A."""
_LENGTHS, _SIGNALS, _NOISES = (-4.0, 4.0), (-6.0, 2.0), (-18.0, 0.0)
_FLAT = 1e6  # deviation of a prior that says nothing
_SIGNAL_MEAN = -1.0  # of log F beside a trend, where f is what the trend leaves; without one F is the unit of the scale
_FIRST, _GROWTH, _LATE, _LATE_GROWTH = 4, 1.3, 64, 1.5
_REACH, _TOLERANCE = 1.0, 1e-3  # of a step of a fit, in logarithms; improvement below which a fit ends
_CAPACITIES = (32, 96, 192)


@dataclass(frozen=True, kw_only=True)
class TaskProcessConfig:
    """The processes, and the fit of those that are fitted.

    Raises:
      ConfigError: where a number is out of range.
    """

    lengths: tuple[float, ...] = PLAIN_LENGTHS
    """Length scales of the fixed processes, without a trend, in roots of the number of columns."""
    noise: float = PLAIN_NOISE
    """E of the fixed processes, and that fits start from."""
    first_lengths: tuple[float, ...] = (0.15, 0.5)
    """Length scales, in roots of the number of columns, that processes without a trend are fitted from, under the prior
    that owes nothing to past tasks. Another one has the trend and the prior that past tasks teach, and is fitted from
    the means of that."""
    fitted: float = 0.5
    """Weight of the fitted processes before the first trial, beside the fixed ones; both together have one."""
    steps: int = 8
    """Points that a fit evaluates, at most, beside its start; with 0 none are fitted."""

    def __post_init__(self) -> None:
        at_least(0, self, "steps")
        positive(self, "noise")
        if not 0.0 < self.fitted < 1.0:
            raise ConfigError(f"0 < fitted < 1 must hold, but got fitted={self.fitted}")
        for name in ("lengths", "first_lengths"):
            if min(getattr(self, name), default=0.0) <= 0:
                raise ConfigError(f"{name} must be some positive numbers, but got {getattr(self, name)}")


class TaskProcess(NamedTuple):
    """Hyperparameters, in logarithms but for the slope."""

    log_length: Array
    """f[D]"""
    log_signal_var: Array
    """Scalar: F."""
    log_noise_var: Array
    """Scalar: E."""
    slope: Array
    """Scalar: s."""


class TaskHyperpriors(NamedTuple):
    """What is thought of the hyperparameters before the first trial."""

    general: LengthScalePrior
    """Without past tasks; every column has the same."""
    learned: LengthScalePrior
    """As past tasks teach it."""


class Trials(NamedTuple):
    """A history as a process sees it; C slots."""

    x: Array
    """f[C, D]"""
    trend: Array
    """f[C]: m, less its mean over the trials."""
    y: Array
    """f[C], standardised, 0 in empty slots."""
    where: Array
    """bool[C]"""


def widen(hyperpriors: TaskHyperpriors, width: int) -> TaskHyperpriors:
    """Priors for tables with more columns, which are zero: their lengths stay as they begin, and play no part."""

    def wider(prior: LengthScalePrior) -> LengthScalePrior:
        added = (0, width - prior.mean.shape[-1])
        return prior._replace(
            mean=jnp.pad(prior.mean, added, mode="edge"),
            deviation=jnp.pad(prior.deviation, added, constant_values=_FLAT),
        )

    return TaskHyperpriors(*map(wider, hyperpriors))


def fixed_processes(config: TaskProcessConfig, hyperpriors: TaskHyperpriors) -> TaskProcess:
    """The fixed processes, in front of each array."""
    rows = [_process(hyperpriors.general, length, config.noise, slope=0.0) for length in config.lengths]
    return _stacked(rows)


def start_processes(config: TaskProcessConfig, hyperpriors: TaskHyperpriors) -> tuple[TaskProcess, LengthScalePrior]:
    """The processes that fits start from, and the priors of each, in front of each array."""
    general, learned = hyperpriors
    rows = [(_process(general, length, config.noise, slope=0.0), general) for length in config.first_lengths]
    taught = _process(learned, USUAL_LENGTH, 1.0, slope=1.0)._replace(log_noise_var=learned.noise_mean)
    rows.append((taught, learned))
    return _stacked([process for process, _ in rows]), _stacked([prior for _, prior in rows])


def _stacked(rows: Sequence[T]) -> T:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _process(prior: LengthScalePrior, length: float, noise: float, *, slope: float) -> TaskProcess:
    """A process whose lengths are a prior's, but of another size; the usual one is `USUAL_LENGTH`."""
    dtype = prior.mean.dtype
    return TaskProcess(
        prior.mean + math.log(length / USUAL_LENGTH),
        jnp.asarray(_SIGNAL_MEAN if slope else 0.0, dtype),
        jnp.asarray(math.log(noise), dtype),
        jnp.asarray(slope, dtype),
    )


def log_shares(config: TaskProcessConfig, dtype: jnp.dtype) -> Array:
    """Logarithms of the weights of the processes before the first trial, f[K], fixed ones first."""
    n_fixed, n_fitted = len(config.lengths), len(config.first_lengths) + 1
    shares = [(1.0 - config.fitted) / n_fixed] * n_fixed + [config.fitted / n_fitted] * n_fitted
    return jnp.log(jnp.asarray(shares, dtype))


def covariance(process: TaskProcess, a: Array, b: Array, trend_a: Array, trend_b: Array) -> Array:
    """Covariance of b, a and f together at points f[n, D] and f[m, D] of trends f[n] and f[m] -> f[n, m]."""
    inverse = jnp.exp(-process.log_length)[None, :]
    signal = jnp.exp(process.log_signal_var) * matern52(squared_distances(a * inverse, b * inverse))
    return OFFSET + signal + process.slope * SLOPE_VARIANCE * trend_a[:, None] * trend_b[None, :]


def variance(process: TaskProcess, trend: Array) -> Array:
    """The diagonal of the covariance at points of trends f[n]; f[n]."""
    return OFFSET + jnp.exp(process.log_signal_var) + process.slope * SLOPE_VARIANCE * trend**2


def observed(process: TaskProcess, trials: Trials) -> tuple[Array, Array]:
    """Covariance of the trials' responses, f[C, C], and how far these are off the mean, f[C]."""
    matrix = covariance(process, trials.x, trials.x, trials.trend, trials.trend)
    matrix = add_noise(matrix, jnp.exp(process.log_noise_var), trials.where)
    return matrix, jnp.where(trials.where, trials.y - process.slope * trials.trend, 0.0)


class ConditionedTask(NamedTuple):
    """A process given the trials."""

    process: TaskProcess
    given: ConditionedGP
    scale: Array
    """Scalar: of its variances."""
    log_density: Array
    """Scalar: of the trials; of a fitted process as this file says."""


def condition_processes(
    config: TaskProcessConfig, hyperpriors: TaskHyperpriors, trials: Trials, freedom: float
) -> ConditionedTask:
    """All processes given the trials, K in front, fixed ones first."""
    fixed = fixed_processes(config, hyperpriors)
    fits = fit_sequence(config, *start_processes(config, hyperpriors), trials, freedom)
    conditioned = condition(_joined(fixed, fits.process), trials, freedom)
    scored = _joined(jnp.zeros(len(config.lengths), trials.y.dtype), fits.gain)
    return conditioned._replace(log_density=conditioned.log_density + scored)


def _joined(one: T, other: T) -> T:
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), one, other)


def condition(processes: TaskProcess, trials: Trials, freedom: float) -> ConditionedTask:
    """Processes of fixed hyperparameters given the trials, K in front."""

    def one(process: TaskProcess) -> ConditionedTask:
        evidence = condition_student_t(*observed(process, trials), trials.where, freedom)
        return ConditionedTask(process, evidence.gp, evidence.variance_scale, evidence.log_density)

    conditioned: ConditionedTask = jax.vmap(one)(processes)
    return conditioned


class Fits(NamedTuple):
    """The last fits of K processes."""

    process: TaskProcess
    """K in front."""
    gain: Array
    """f[K]: what to add to their log-densities of all trials, for those by all fits."""


def fit_sequence(
    config: TaskProcessConfig, start: TaskProcess, prior: LengthScalePrior, trials: Trials, freedom: float
) -> Fits:
    """Fits K processes to the trials, again and again as these come.

    Args:
      config: how long a fit is.
      start: where the first fits start; K in front of each array.
      prior: of the hyperparameters of each; K in front.
      trials: the history, trials in the order of their evaluation, empty slots last.
      freedom: nu.
    """
    count, fits = jnp.sum(trials.where), Fits(start, jnp.zeros(start.slope.shape, trials.y.dtype))
    if config.steps == 0:  # the pieces that they are scored by add up to the whole
        return fits
    for capacity, sizes in fit_sizes(trials.where.shape[0]):
        shown = Trials(*(field[:capacity] for field in trials))
        fits = _fit_stage(config, prior, shown, freedom, jnp.asarray(sizes), count, fits)
    return fits


def fit_sizes(capacity: int) -> Iterator[tuple[int, list[int]]]:
    """Numbers of trials at which processes are fitted, by the least of some capacities that holds them.

    Example:
      >>> list(fit_sizes(20))
      [(20, [4, 5, 6, 8, 11, 14, 19])]
    """
    sizes, size = [], float(_FIRST)
    while size <= capacity:
        sizes.append(int(size))
        size = max(size * (_GROWTH if size < _LATE else _LATE_GROWTH), sizes[-1] + 1)
    least = 0
    for most in [min(most, capacity) for most in _CAPACITIES if most < capacity] + [capacity]:
        held = [size for size in sizes if least < size <= most]
        if held:
            yield most, held
        least = most


def _fit_stage(
    config: TaskProcessConfig,
    prior: LengthScalePrior,
    trials: Trials,
    freedom: float,
    sizes: Array,
    count: Array,
    fits: Fits,
) -> Fits:
    def fit(i: Array, fits: Fits) -> Fits:
        where = trials.where & (jnp.arange(trials.where.shape[0]) < sizes[i])
        first = trials._replace(where=where, y=jnp.where(where, trials.y, 0.0))
        process, before, after = _fit(config, prior, fits.process, first, freedom)
        return Fits(process, fits.gain + before - after)

    done: Fits = lax.fori_loop(0, jnp.sum(sizes <= count), fit, fits)
    return done


def _fit(
    config: TaskProcessConfig, prior: LengthScalePrior, start: TaskProcess, trials: Trials, freedom: float
) -> tuple[TaskProcess, Array, Array]:
    """Processes of a higher posterior density than those that a fit starts from, and the log-evidence of both.

    K in front; the evidence of where a fit starts comes first.
    """

    def objective(vector: Array, slope: Array, prior: LengthScalePrior) -> Array:
        process = _process_of(vector, slope)
        evidence = log_student_t_density(*observed(process, trials), trials.where, jnp.asarray(freedom, trials.y.dtype))
        return evidence + _log_prior(prior, process)

    def value_and_gradient(vectors: Array) -> tuple[Array, Array]:
        return jax.vmap(jax.value_and_grad(objective))(vectors, start.slope, prior)

    def evidence_of(vectors: Array, density: Array) -> Array:
        return density - jax.vmap(_log_prior)(prior, _process_of(vectors, start.slope))

    vectors = jnp.concatenate([start.log_length, start.log_signal_var[:, None], start.log_noise_var[:, None]], axis=1)
    n_columns = start.log_length.shape[1]
    low, high = (
        jnp.asarray([lengths] * n_columns + [signal, noise], vectors.dtype)
        for lengths, signal, noise in zip(_LENGTHS, _SIGNALS, _NOISES, strict=True)
    )
    vectors = jnp.clip(vectors, low[None, :], high[None, :])
    # Without a trend, F is the unit of the scale.
    movable = (jnp.arange(n_columns + 2) != n_columns)[None, :] | (start.slope > 0.0)[:, None]
    best = maximise_in_box(
        value_and_gradient,
        vectors,
        low,
        high,
        steps=config.steps,
        reach=_REACH,
        tolerance=_TOLERANCE,
        movable=movable,
    )
    before, after = evidence_of(vectors, best.first), evidence_of(best.points, best.values)
    return _process_of(best.points, start.slope), before, after


def _process_of(vector: Array, slope: Array) -> TaskProcess:
    """Processes from their hyperparameters f[..., D + 2] and slopes f[...]."""
    return TaskProcess(vector[..., :-2], vector[..., -2], vector[..., -1], slope)


def _log_prior(prior: LengthScalePrior, process: TaskProcess) -> Array:
    signal = (process.log_signal_var - _SIGNAL_MEAN) ** 2
    return log_prior(prior, process.log_length, process.log_noise_var) - 0.5 * signal
