"""Student-t processes: Gaussian processes whose variance scale is integrated out (Shah, Wilson and Ghahramani 2014).

The covariance is multiplied by sigma^2 ~ InvGamma(nu / 2, nu / 2), so observations have a multivariate t density of nu
degrees of freedom. Given n observations, a prediction has a t density of nu + n degrees of freedom. Its location is the
Gaussian process' mean, and its squared scale is the Gaussian process' variance times

    s = (nu + y' K^-1 y) / (nu + n).

Predictive variances therefore follow the spread of the observations. The variance of a t density of d degrees of
freedom is its squared scale times d / (d - 2): at five trials and nu = 5, a quarter more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Key

from dre_jax.gp.cholesky import cholesky_solve, invert_factor, safe_cholesky, triangular_solve
from dre_jax.gp.regression import ConditionedGP, PreparedGP, condition_gp, matmul, predict_signal, prepare_gp
from dre_jax.runtime.arrays import namespace


class ConditionedStudentT(NamedTuple):
    """A Student-t process conditioned on a history, and the density of that history."""

    gp: ConditionedGP
    """The Gaussian process of the same covariance."""
    prepared_gp: PreparedGP
    """The same, prepared for predictions."""
    variance_scale: Float[Array, ""]
    """s (nu + n) / (nu + n - 2): the predictive variance is this times the Gaussian process' variance."""
    log_density: Float[Array, ""]
    """Log-density of the observations, up to a term that depends on their number alone."""

    def predict(
        self, cross: Float[Array, "n m"], prior: Float[Array, " m"]
    ) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Returns the predictive mean and variance of the signal; arguments as in `predict_signal`."""
        mean, variance = predict_signal(self.prepared_gp, cross, prior)
        return mean, self.variance_scale * variance

    def condition_sample(
        self, at_trials: Float[Array, " n"], noise_var: Float[Array, ""] | Float[Array, " n"], key: Key[Array, ""]
    ) -> Callable[[Float[Array, "n m"], Float[Array, " m"]], Float[Array, " m"]]:
        """Conditions a sample of the prior on the history (Matheron's rule), given its values at the trials.

        Returns a function that maps the covariance of the observations and other points, and the sample's values there,
        to those of the posterior.
        """
        gp, deviation = self.gp, jnp.sqrt(self.variance_scale)
        noise = jnp.sqrt(noise_var) * jax.random.normal(key, at_trials.shape, at_trials.dtype)
        weights = gp.weights - deviation * cholesky_solve(gp.lower, jnp.where(gp.where, at_trials + noise, 0.0))
        return lambda cross, sample: matmul(weights, jnp.where(gp.where[:, None], cross, 0.0)) + deviation * sample


def condition_student_t(
    matrix: Float[Array, "n n"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    degrees_of_freedom: Float[Array, ""] | float,
) -> ConditionedStudentT:
    """Conditions a Student-t process on observations, 0 in empty slots, with a covariance of `add_noise`.

    Predictions have a variance if the degrees of freedom are above 2.

    Example:
      >>> near = condition_student_t(jnp.eye(2), jnp.zeros(2), jnp.ones(2, bool), 4.0)
      >>> far = condition_student_t(jnp.eye(2), jnp.full(2, 3.0), jnp.ones(2, bool), 4.0)
      >>> float(near.variance_scale), float(far.variance_scale), bool(near.log_density > far.log_density)
      (1.0, 5.5, True)
    """
    gp = condition_gp(matrix, y, where)
    squares = matmul(y, gp.weights)
    _, *variance_scale_and_density = _scales_and_density(gp.lower, squares, where, degrees_of_freedom)
    return ConditionedStudentT(gp, prepare_gp(gp), *variance_scale_and_density)


def log_t_density(squares: Any, half_log_determinant: Any, count: Any, degrees_of_freedom: Any = None) -> Any:
    """Returns the log-density of n observations y, up to a term that depends on n and nu alone.

    Works with numbers, and with arrays of NumPy or JAX.

    Args:
      squares: y' K^-1 y.
      half_log_determinant: log |K| / 2, the sum of the logarithms on the diagonal of the Cholesky factor.
      count: n.
      degrees_of_freedom: nu; None for its limit to 0, where the prior of the variance is improper.

    Example:
      >>> float(log_t_density(3.0, 0.0, 2, 1.0).round(2)), float(log_t_density(1.0, 0.5, 2))
      (-2.08, -0.5)
    """
    xp = namespace(squares)
    if degrees_of_freedom is None:
        return -0.5 * count * xp.log(squares) - half_log_determinant
    return -0.5 * (degrees_of_freedom + count) * xp.log1p(squares / degrees_of_freedom) - half_log_determinant


def _scales_and_density(
    lower: Float[Array, "n n"],
    squares: Float[Array, ""],
    where: Bool[Array, " n"],
    degrees_of_freedom: Float[Array, ""] | float,
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Returns s, and the last two fields of `ConditionedStudentT`, given y' K^-1 y."""
    count = jnp.sum(where, dtype=squares.dtype)
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(lower)))
    log_density = log_t_density(squares, half_log_determinant, count, degrees_of_freedom)
    total = degrees_of_freedom + squares
    return total / (degrees_of_freedom + count), total / (degrees_of_freedom + count - 2.0), log_density


@jax.custom_vjp
def log_student_t_density(
    matrix: Float[Array, "n n"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    degrees_of_freedom: Float[Array, ""],
) -> Float[Array, ""]:
    """Returns `ConditionedStudentT.log_density`; arguments as in `condition_student_t`.

    The gradient uses the factor of the forward pass with its jitter. The gradient with respect to the degrees of
    freedom, which are a setting, is zero.
    """
    lower, _ = safe_cholesky(matrix)
    squares = jnp.sum(triangular_solve(lower, y) ** 2)
    return _scales_and_density(lower, squares, where, degrees_of_freedom)[2]


_Residuals = tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"], Float[Array, ""]]
"""The inverse Cholesky factor, K^-1 y, the filled slots and s."""


def _forward(
    matrix: Float[Array, "n n"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    degrees_of_freedom: Float[Array, ""],
) -> tuple[Float[Array, ""], _Residuals]:
    lower, _ = safe_cholesky(matrix)
    # The inverse of the factor serves the value and the gradient: one triangular system in place of four.
    inverse = invert_factor(lower)
    weights = matmul(matmul(inverse, y), inverse)
    scale, _, log_density = _scales_and_density(lower, matmul(y, weights), where, degrees_of_freedom)
    return log_density, (inverse, weights, where, scale)


def _backward(
    residuals: _Residuals, cotangent: Float[Array, ""]
) -> tuple[Float[Array, "n n"], Float[Array, " n"], None, None]:
    inverse, weights, where, scale = residuals
    matrix_gradient = 0.5 * (weights[:, None] * weights[None, :] / scale - matmul(inverse.T, inverse))
    pair_mask = where[:, None] & where[None, :]
    return cotangent * jnp.where(pair_mask, matrix_gradient, 0.0), -cotangent * weights / scale, None, None


log_student_t_density.defvjp(_forward, _backward)
