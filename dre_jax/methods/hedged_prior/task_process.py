"""A Gaussian process of the task alone, given its hyperparameters.

Standardised responses are modelled as

    y(x) = b + s a m(x) + f(w(x)) + noise,    b ~ N(0, 1),  a ~ N(1, A),  f ~ GP(0, F Matern 5/2),  noise ~ N(0, E),

with a length scale for each column and a variance scale of the task that multiplies all variances
(`dre_jax.gp.student`). s is 1 with the learned trend m, and 0 without it. w warps each column by the distribution
function of Kumaraswamy (Snoek et al. 2014), so that a process can vary fast at one edge, as before a cliff, and slowly
elsewhere; most processes have w(x) = x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.kernels import matern52, squared_distances
from dre_jax.gp.length_scale_prior import GENERIC_LENGTHSCALE, LengthScalePrior
from dre_jax.gp.regression import observation_noise
from dre_jax.gp.student import ConditionedStudentT, condition_student_t
from dre_jax.methods.hedged_prior.priors import OFFSET_VAR, SLOPE_VARIANCE, Trials, observe

LOG_LENGTHSCALE_BOUNDS = (-4.0, 4.0)
LOG_SIGNAL_MEAN = -1.0
"""Prior mean of log F with a trend, of deviation 1; without one the variance scale determines F."""
_FLAT_DEVIATION = 1e6  # standard deviation of a prior that is flat in effect
_EDGE = 1e-6  # of [0, 1], where a warp's derivative may be infinite


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
    log_warp: Array
    """f[2, D]: logarithms of the two shapes of each column's warp; 0 for none."""


class TaskHyperpriors(NamedTuple):
    """Priors of the hyperparameters of the processes of the task."""

    generic: LengthScalePrior
    """Without past tasks; equal for all columns."""
    learned: LengthScalePrior | None = None
    """From past tasks; None without any."""

    def pad_columns(self, width: int) -> TaskHyperpriors:
        """Returns priors for more columns, all of which are zero, so that their length scales change no result."""

        def wider(prior: LengthScalePrior | None) -> Any:
            if prior is None:
                return None
            padding = (0, width - prior.mean.shape[-1])
            return prior._replace(
                mean=jnp.pad(prior.mean, padding, mode="edge"),
                deviation=jnp.pad(prior.deviation, padding, constant_values=_FLAT_DEVIATION),
            )

        return TaskHyperpriors(*map(wider, self))


def make_process(prior: LengthScalePrior, length: float, noise: float, *, trend_weight: float = 0.0) -> TaskProcess:
    """Returns a process with a prior's mean length scales, multiplied by ``length / GENERIC_LENGTHSCALE``."""
    dtype = prior.mean.dtype
    return TaskProcess(
        prior.mean + math.log(length / GENERIC_LENGTHSCALE),
        jnp.asarray(LOG_SIGNAL_MEAN if trend_weight else 0.0, dtype),
        jnp.asarray(math.log(noise), dtype),
        jnp.asarray(trend_weight, dtype),
        jnp.zeros((2, *prior.mean.shape), dtype),
    )


def rescale(process: TaskProcess, x: Array) -> Array:
    """Returns configurations f[n, D], warped and divided by the length scales."""
    shape_a, shape_b = jnp.exp(process.log_warp)[:, None, :]
    inside = jnp.clip(x, _EDGE, 1.0 - _EDGE)
    warped = 1.0 - jnp.exp(shape_b * jnp.log1p(-jnp.exp(shape_a * jnp.log(inside))))
    return (warped + (x - inside)) * jnp.exp(-process.log_lengthscale)[None, :]


def task_covariance(process: TaskProcess, a: Array, b: Array, trend_a: Array, trend_b: Array) -> Array:
    """Returns the covariance of b + s a m + f at points f[n, D] and f[m, D] with trends f[n] and f[m], f[n, m]."""
    squared = squared_distances(rescale(process, a), rescale(process, b))
    signal = jnp.exp(process.log_signal_var) * matern52(squared)
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


def condition_process(process: TaskProcess, trials: Trials, degrees_of_freedom: float) -> TaskPosterior:
    """Returns a process given the trials."""
    moments = task_covariance_and_residuals(process, trials)
    return TaskPosterior(process, condition_student_t(*moments, trials.where, degrees_of_freedom))


def sample_process_prior(process: TaskProcess, trials: Trials, key: Array) -> Callable[[Array, Array], Array]:
    """Samples a function of points f[n, D] and their trends f[n], with mean zero and the covariance of a process."""
    line_key, signal_key = jax.random.split(key)
    offset, slope = jax.random.normal(line_key, (2,), trials.y.dtype)
    slope = slope * jnp.sqrt(process.trend_weight * SLOPE_VARIANCE)
    signal = sample_matern52(trials.x.shape[-1], jnp.exp(process.log_signal_var), signal_key)
    return lambda x, trend: math.sqrt(OFFSET_VAR) * offset + slope * trend + signal(rescale(process, x))
