"""A multi-task Gaussian process: one process that all tasks share, and one of each task.

Standardised responses of task i are modelled as

    y_i(x) = b_i + c(x) + f_i(x) + noise,
    b_i ~ N(0, 1),    c ~ GP(0, C Matern 5/2),    f_i ~ GP(0, F Matern 5/2),    noise ~ N(0, E),

with length scales for each column of c and of f (Swersky et al. 2013; Leroy et al. 2022). The cost grows with the cube
of the number of all trials.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import invert_factor, safe_cholesky
from dre_jax.gp.fit import maximise_by_bfgs
from dre_jax.gp.kernels import matern52, squared_distances_by_products
from dre_jax.gp.length_scale_prior import LengthScalePrior, log_length_scale_prior
from dre_jax.gp.regression import add_noise, log_gaussian_density, matmul
from dre_jax.gp.task_process import OFFSET_VAR
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort

_VARIANCES = (-0.7, 1.5), (-1.2, 1.5)  # means and standard deviations of the prior of log C and log F
_LENGTHS, _SIGNALS, _NOISES = (-3.0, 4.0), (-6.0, 2.0), (-7.0, 0.0)
_LARGE_LOG_NOISE = -2.0  # the density often has a local maximum with little noise and one with much
_MAX_STEP = 1.0


class MultiTaskParams(NamedTuple):
    """Log hyperparameters of a multi-task process."""

    log_common_lengthscale: Array
    """f[D]: of c."""
    log_own_lengthscale: Array
    """f[D]: of f."""
    log_common_var: Array
    """Scalar: log C."""
    log_own_var: Array
    """Scalar: log F."""
    log_noise_var: Array
    """Scalar: log E."""

    def common_columns(self, x: Array) -> Array:
        """Returns configurations f[n, D], divided by the length scales of c."""
        return _scale(x, self.log_common_lengthscale)

    def common_covariance(self, a: Array, b: Array) -> Array:
        """Returns the covariance of c at `common_columns` f[n, D] and f[m, D], f[n, m]."""
        return jnp.exp(self.log_common_var) * matern52(squared_distances_by_products(a, b))

    def covariance(self, x: Array, task: Array) -> Array:
        """Returns the covariance of observations at f[R, D] of tasks i32[R], f[R, R]; slots of task -1 are empty."""
        columns, task_columns = self.common_columns(x), _scale(x, self.log_own_lengthscale)
        of_task = jnp.exp(self.log_own_var) * matern52(squared_distances_by_products(task_columns, task_columns))
        of_task = jnp.where(task[:, None] == task[None, :], OFFSET_VAR + of_task, 0.0)
        return add_noise(self.common_covariance(columns, columns) + of_task, jnp.exp(self.log_noise_var), task >= 0)

    def log_density(self, x: Array, y: Array, task: Array) -> Array:
        """Returns the log-density of the observations f[R], a scalar; other arguments as in `covariance`."""
        return log_gaussian_density(self.covariance(x, task), y, task >= 0)

    def condition(self, x: Array, y: Array, task: Array) -> tuple[Array, Array]:
        """Returns K^-1 y, f[R], and L^-1, f[R, R], of the covariance K = L L^T of the observations f[R]."""
        lower, _ = safe_cholesky(self.covariance(x, task))
        inverse_factor = invert_factor(lower)
        return matmul(inverse_factor.T, matmul(inverse_factor, jnp.where(task >= 0, y, 0.0))), inverse_factor


def _scale(x: Array, log_lengthscale: Array) -> Array:
    return x * jnp.exp(-log_lengthscale)[None, :]


@jit_with_less_effort("steps", is_brief=few_numbers)
def fit_multi_task(steps: int, x: Array, y: Array, task: Array, lengths: LengthScalePrior) -> MultiTaskParams:
    """Returns the hyperparameters of the highest posterior density.

    Args:
      steps: maximum number of points that are evaluated after each of two starts.
      x: f[R, D].
      y: f[R], standardised responses.
      task: i32[R], numbers of the tasks; -1 in empty slots.
      lengths: the prior of the length scales and of the noise.
    """

    def log_posterior(params: MultiTaskParams) -> Array:
        variances = zip((params.log_common_var, params.log_own_var), _VARIANCES, strict=True)
        log_prior = sum(-0.5 * ((value - mean) / deviation) ** 2 for value, (mean, deviation) in variances)
        log_prior += log_length_scale_prior(lengths, params.log_common_lengthscale, lengths.noise_mean)
        log_prior += log_length_scale_prior(lengths, params.log_own_lengthscale, params.log_noise_var)
        return params.log_density(x, y, task) + log_prior

    def start(log_noise: Array) -> MultiTaskParams:
        common_var, task_var = (jnp.asarray(mean, x.dtype) for mean, _ in _VARIANCES)
        return _clip(MultiTaskParams(lengths.mean, lengths.mean, common_var, task_var, log_noise))

    starts = jax.vmap(start)(jnp.stack([lengths.noise_mean, jnp.full_like(lengths.noise_mean, _LARGE_LOG_NOISE)]))
    maxima, values = maximise_by_bfgs(log_posterior, starts, _clip, steps=steps, reach=_MAX_STEP)
    best = jnp.argmax(values)
    return jax.tree.map(lambda a: a[best], maxima)


def _clip(params: MultiTaskParams) -> MultiTaskParams:
    bounds = _LENGTHS, _LENGTHS, _SIGNALS, _SIGNALS, _NOISES
    return MultiTaskParams(*(jnp.clip(a, *ends) for a, ends in zip(params, bounds, strict=True)))
