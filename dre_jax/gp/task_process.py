"""A Gaussian process of one task, given its hyperparameters: its covariance, density, posterior and samples.

Standardised responses are modelled as

    y(x) = b + f(w(x)) + noise,    b ~ N(0, 1),  f ~ GP(0, Matern 5/2),  noise ~ N(0, E),

with a length scale for each column and a variance scale of the task that multiplies all variances
(`dre_jax.gp.student`). w warps each column by the distribution function of Kumaraswamy (Snoek et al. 2014), so that a
process can vary fast at one edge, as before a cliff, and slowly elsewhere; most processes have w(x) = x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from dre_jax.gp.fourier import sample_matern52
from dre_jax.gp.kernels import matern52, squared_distances
from dre_jax.gp.length_scale_prior import GENERIC_LENGTHSCALE, LengthScalePrior
from dre_jax.gp.regression import add_noise, observation_noise
from dre_jax.gp.student import ConditionedStudentT, condition_student_t, log_student_t_density
from dre_jax.search.history import History

OFFSET_VAR = 1.0
"""Variance of b."""
LOG_LENGTHSCALE_BOUNDS = (-4.0, 4.0)
_EDGE = 1e-6  # of [0, 1], where a warp's derivative may be infinite


def observe(
    trials: History, signal: Float[Array, "n n"], mean: Float[Array, " n"], log_noise_var: Float[Array, ""]
) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """Returns the covariance of the observations, and the observations minus their prior mean."""
    matrix = add_noise(signal, observation_noise(log_noise_var, trials.noise_var), trials.where)
    return matrix, jnp.where(trials.where, trials.response - mean, 0.0)


class TaskProcess(NamedTuple):
    """Hyperparameters of a process.

    Its trials have standardised responses, 0 in empty slots (`History.with_response`).

    Example:
      >>> import numpy as np
      >>> from dre_jax.gp.length_scale_prior import generic_prior
      >>> from dre_jax.search.history import make_history
      >>> process = make_process(generic_prior(1), 0.3, 1e-3)
      >>> trials = make_history(np.zeros((1, 1)), np.ones(1)).with_response(jnp.ones(1))
      >>> posterior = process.condition(trials, 5.0)
      >>> mean, variance = posterior.predict(trials, jnp.array([[0.0], [9.0]]))
      >>> mean.round(2).tolist(), variance.round(1).tolist()
      ([1.0, 0.5], [0.0, 2.1])
    """

    log_lengthscale: Float[Array, " D"]
    """Logarithms of the length scales."""
    log_noise_var: Float[Array, ""]
    """Log E."""
    log_warp: Float[Array, "2 D"]
    """Logarithms of the two shapes of each column's warp; 0 for none."""

    def scale_columns(self, x: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Returns configurations, warped and divided by the length scales."""
        shape_a, shape_b = jnp.exp(self.log_warp)[:, None, :]
        inside = jnp.clip(x, _EDGE, 1.0 - _EDGE)
        warped = 1.0 - jnp.exp(shape_b * jnp.log1p(-jnp.exp(shape_a * jnp.log(inside))))
        return (warped + (x - inside)) * jnp.exp(-self.log_lengthscale)[None, :]

    def covariance(self, a: Float[Array, "n D"], b: Float[Array, "m D"]) -> Float[Array, "n m"]:
        """Returns the covariance of b + f at two sets of points."""
        return OFFSET_VAR + matern52(squared_distances(self.scale_columns(a), self.scale_columns(b)))

    def observe(self, trials: History) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        """Returns the covariance of the observations, and the observations."""
        return observe(trials, self.covariance(trials.x, trials.x), jnp.zeros_like(trials.response), self.log_noise_var)

    def log_density(self, trials: History, degrees_of_freedom: float) -> Float[Array, ""]:
        """Returns the log-density of the observations up to a term in their number (`log_student_t_density`)."""
        freedom = jnp.asarray(degrees_of_freedom, trials.response.dtype)
        return log_student_t_density(*self.observe(trials), trials.where, freedom)

    def condition(self, trials: History, degrees_of_freedom: float) -> TaskPosterior:
        """Returns the process given the trials."""
        return TaskPosterior(self, condition_student_t(*self.observe(trials), trials.where, degrees_of_freedom))

    def sample_prior(self, trials: History, key: Key[Array, ""]) -> Callable[[Float[Array, "n D"]], Float[Array, " n"]]:
        """Samples a function of points, with mean zero and the covariance of the process.

        Only the number of columns and the dtype of the trials are read.
        """
        dtype, (offset_key, signal_key) = trials.response.dtype, jax.random.split(key)
        offset, _ = jax.random.normal(offset_key, (2,), dtype)  # two, so that draws of earlier versions stay
        signal = sample_matern52(trials.x.shape[-1], jnp.ones((), dtype), signal_key)
        return lambda x: math.sqrt(OFFSET_VAR) * offset + signal(self.scale_columns(x))


class TaskPosterior(NamedTuple):
    """A process given the trials."""

    process: TaskProcess
    student_t: ConditionedStudentT

    def predict(self, trials: History, new: Float[Array, "m D"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Returns the mean and variance at new configurations."""
        variance = jnp.full(len(new), OFFSET_VAR + 1.0, new.dtype)
        return self.student_t.predict(self.process.covariance(trials.x, new), variance)

    def noise_variances(self, known: Float[Array, ""] | float = 0.0) -> Float[Array, " K"]:
        """Returns the noise variances of K processes, K in front of each array; a known one is added."""
        return (jnp.exp(self.process.log_noise_var) + known) * self.student_t.variance_scale

    def sample(self, trials: History, key: Key[Array, ""]) -> Callable[[Float[Array, "m D"]], Float[Array, " m"]]:
        """Samples a function of configurations given the trials."""
        prior_key, noise_key = jax.random.split(key)
        function = self.process.sample_prior(trials, prior_key)
        noise_var = observation_noise(self.process.log_noise_var, trials.noise_var)
        residual = self.student_t.condition_sample(function(trials.x), noise_var, noise_key)
        return lambda rows: residual(self.process.covariance(trials.x, rows), function(rows))


def make_process(prior: LengthScalePrior, length: float, noise: float) -> TaskProcess:
    """Returns a process with a prior's mean length scales, multiplied by ``length / GENERIC_LENGTHSCALE``."""
    dtype = prior.mean.dtype
    return TaskProcess(
        prior.mean + math.log(length / GENERIC_LENGTHSCALE),
        jnp.asarray(math.log(noise), dtype),
        jnp.zeros((2, *prior.mean.shape), dtype),
    )
