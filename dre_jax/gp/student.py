"""Gaussian processes whose scale is unknown (Shah, Wilson and Ghahramani 2014).

Every covariance is multiplied by sigma^2 ~ InvGamma(nu / 2, nu / 2), which is integrated out: observations have a
multivariate t density of nu degrees of freedom. Given n of them, a prediction has a t density of nu + n degrees, with
the Gaussian's mean, and as its squared scale the Gaussian's variance times

    s = (nu + y' K^-1 y) / (nu + n).

So a history that lies closer together, or further apart, than the covariance says brings its own scale. The variance of
a t density of d degrees is its squared scale times d / (d - 2): at five trials and nu = 5, a quarter more.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import factor, solve
from dre_jax.gp.regression import Conditioned, matmul


class Evidence(NamedTuple):
    """A process given a history, and how well it explains it."""

    given: Conditioned
    """The process."""
    scale: Array
    """Scalar: s, which makes the Gaussian's variance the squared scale of a prediction's t density."""
    variance_scale: Array
    """Scalar: s (nu + n) / (nu + n - 2), which makes the Gaussian's variance that of a prediction; for nu > 2."""
    log_density: Array
    """Scalar: of the observations, up to a term that depends on their number alone."""


def weigh(matrix: Array, y: Array, where: Array, freedom: Array | float) -> Evidence:
    """Conditions on observations; f[n, n] from `gp.noisy`, f[n] that is 0 in empty slots, bool[n], nu.

    Example:
      >>> near = weigh(jnp.eye(2), jnp.zeros(2), jnp.ones(2, bool), 4.0)
      >>> far = weigh(jnp.eye(2), jnp.full(2, 3.0), jnp.ones(2, bool), 4.0)
      >>> float(near.scale.round(2)), float(far.scale.round(2)), bool(near.log_density > far.log_density)
      (0.67, 3.67, True)
      >>> float(near.variance_scale)
      1.0
    """
    lower, _ = factor(matrix)
    weights = solve(lower, y)
    squares, count = matmul(y, weights), jnp.sum(where, dtype=y.dtype)
    value = -0.5 * (freedom + count) * jnp.log1p(squares / freedom) - jnp.sum(jnp.log(jnp.diagonal(lower)))
    total = freedom + squares
    scale, variance_scale = total / (freedom + count), total / (freedom + count - 2.0)
    return Evidence(Conditioned(lower, weights, where), scale, variance_scale, value)


@jax.custom_vjp
def log_evidence(matrix: Array, y: Array, where: Array, freedom: Array) -> Array:
    """`Evidence.log_density`, with a gradient through the factor that was found, at the price of one inverse.

    The number of degrees is a setting: its gradient is zero.
    """
    return weigh(matrix, y, where, freedom).log_density


def _forward(matrix: Array, y: Array, where: Array, freedom: Array) -> tuple[Array, tuple[Conditioned, Array]]:
    found = weigh(matrix, y, where, freedom)
    return found.log_density, (found.given, found.scale)


def _backward(kept: tuple[Conditioned, Array], g: Array) -> tuple[Array, Array, None, None]:
    (lower, weights, where), scale = kept
    inverse = solve(lower, jnp.eye(lower.shape[0], dtype=lower.dtype))
    of_matrix = 0.5 * (weights[:, None] * weights[None, :] / scale - inverse)
    filled = where[:, None] & where[None, :]
    return g * jnp.where(filled, of_matrix, 0.0), -g * weights / scale, None, None


log_evidence.defvjp(_forward, _backward)
