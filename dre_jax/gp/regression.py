"""Gaussian processes on histories with empty slots (Rasmussen and Williams 2006, chapters 2 and 5).

Every function works in float32 and in float64, on one Gaussian process; `jax.vmap` makes many of them. A history is
`x` f[n, D], `y` f[n], standardised and 0 in empty slots, and `where` bool[n], which slots are filled. Matrix products
feed factorisations and subtractions, so they ask for the highest precision: accelerators would round their factors to a
few bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.cholesky import factor, half_product, made_ready, solve
from dre_jax.gp.kernels import LOG_2PI, Kernel, correlation, squared_distances
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_eager_calls

matmul = partial(jnp.matmul, precision="highest")
"""Matrix product of which nothing is rounded before it is summed."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GPParams:
    """Hyperparameters of a Gaussian process with a length scale for each column, in logarithms, and its kernel."""

    log_length: Array
    """f[D]"""
    log_scale: Array
    """Scalar: variance of the signal."""
    log_noise: Array
    """Scalar: variance of the noise."""
    kernel: Kernel = field(default="matern52", metadata={"static": True})
    """Correlation of the signal."""


def covariance(params: GPParams, a: Array, b: Array) -> Array:
    """Covariance of the signal; f[n, D] and f[m, D] -> f[n, m]."""
    inverse = jnp.exp(-params.log_length)[None, :]
    return jnp.exp(params.log_scale) * correlation(params.kernel, squared_distances(a * inverse, b * inverse))


def noisy(matrix: Array, noise: Array, where: Array) -> Array:
    """Covariance f[n, n] of observations: noise, a variance or f[n], on the diagonal, and the identity in empty slots.

    Those so play no part.
    """
    n = where.shape[0]
    diagonal = jnp.where(where, jnp.broadcast_to(noise, (n,)), 1.0)
    return jnp.where(where[:, None] & where[None, :], matrix, 0.0) + jnp.diag(diagonal)


@jax.custom_vjp
def log_density(matrix: Array, y: Array, where: Array) -> Array:
    """Log-density of observations f[n], 0 in empty slots, under a Gaussian of mean zero and covariance f[n, n] (5.8).

    Its gradient goes through the factor that was found, jitter and all, at the price of one inverse.
    """
    return _log_density(matrix, y, where)[0]


def _log_density(matrix: Array, y: Array, where: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    lower, _ = factor(matrix)
    weights = solve(lower, y)
    count = jnp.sum(where, dtype=y.dtype)
    value = -0.5 * matmul(y, weights) - jnp.sum(jnp.log(jnp.diagonal(lower))) - 0.5 * count * LOG_2PI
    return value, (lower, weights, where)


def _log_density_gradient(kept: tuple[Array, Array, Array], g: Array) -> tuple[Array, Array, None]:
    lower, weights, where = kept
    inverse = solve(lower, jnp.eye(lower.shape[0], dtype=lower.dtype))
    filled = where[:, None] & where[None, :]
    of_matrix = jnp.where(filled, 0.5 * (weights[:, None] * weights[None, :] - inverse), 0.0)
    return g * of_matrix, -g * weights, None


log_density.defvjp(_log_density, _log_density_gradient)


def log_marginal_likelihood(params: GPParams, x: Array, y: Array, where: Array) -> Array:
    """Log-likelihood of a history (equation 5.8), a scalar.

    Args:
      params: hyperparameters.
      x: f[n, D].
      y: f[n], responses.
      where: bool[n], the filled slots.
    """
    return log_density(noisy(covariance(params, x, x), jnp.exp(params.log_noise), where), y, where)


class Conditioned(NamedTuple):
    """A Gaussian process given a history: everything that a prediction needs but the kernel."""

    lower: Array
    """f[n, n], factor of the covariance of the observations."""
    weights: Array
    """f[n], that covariance, inverted, times the observations."""
    where: Array
    """bool[n]"""


def condition(matrix: Array, y: Array, where: Array) -> Conditioned:
    """Conditions on observations; f[n, n] from `noisy`, f[n] that is 0 in empty slots, bool[n]."""
    lower, _ = factor(matrix)
    return Conditioned(lower, solve(lower, y), where)


class Ready(NamedTuple):
    """A Gaussian process given a history, made ready for predictions block by block."""

    half: Array
    """f[n, n], what `made_ready` makes of the factor."""
    weights: Array
    """f[n], as in `Conditioned`."""
    where: Array
    """bool[n]"""


def ready(given: Conditioned) -> Ready:
    """Makes a process ready; outside of the blocks, since a TPU inverts the factor."""
    return Ready(made_ready(given.lower), given.weights, given.where)


def predict(given: Ready, cross: Array, prior: Array) -> tuple[Array, Array]:
    """Mean and variance of the signal at m points, two f[m] (equations 2.25 and 2.26).

    Args:
      given: n observations.
      cross: f[n, m], covariance of the observed and the new.
      prior: f[m], variance of the new before the observations; the variance is at least a rounding of it.
    """
    cross = jnp.where(given.where[:, None], cross, 0.0)
    reduction = jnp.sum(half_product(given.half, cross) ** 2, axis=0)
    least = prior * jnp.finfo(prior.dtype).eps
    return matmul(given.weights, cross), jnp.maximum(prior - reduction, least)


def predict_at(params: GPParams, x: Array, given: Ready, new: Array) -> tuple[Array, Array]:
    """Mean and variance of the signal at f[m, D], two f[m], given observations at f[n, D]."""
    prior = jnp.broadcast_to(jnp.exp(params.log_scale), new.shape[:1])
    return predict(given, covariance(params, x, new), prior)


@jit_eager_calls()
def posterior(params: GPParams, x: Array, y: Array, where: Array, new: Array) -> tuple[Array, Array]:
    """Mean and variance of the signal, two f[m], at new points given a history.

    Args:
      params: hyperparameters.
      x: f[n, D].
      y: f[n], responses.
      where: bool[n], the filled slots.
      new: f[m, D], any number of points.

    Example:
      >>> params = GPParams(jnp.zeros(1), jnp.float32(0.0), jnp.float32(-9.0))
      >>> new = jnp.array([[0.0], [9.0]])
      >>> mean, variance = posterior(params, jnp.zeros((1, 1)), jnp.ones(1), jnp.ones(1, bool), new)
      >>> mean.round(2).tolist(), variance.round(2).tolist()
      ([1.0, 0.0], [0.0, 1.0])
    """
    return predict_in_blocks(params, x, condition_at(params, x, y, where), new)


def condition_at(params: GPParams, x: Array, y: Array, where: Array) -> Ready:
    """The process given a history, ready for `predict_in_blocks`; arguments as in `posterior`."""
    y = jnp.where(where, y, 0.0)
    return ready(condition(noisy(covariance(params, x, x), jnp.exp(params.log_noise), where), y, where))


def predict_in_blocks(params: GPParams, x: Array, given: Ready, new: Array) -> tuple[Array, Array]:
    """`predict_at` of any number of points f[m, D]."""
    mean, variance = by_blocks(partial(predict_at, params, x, given), new)
    return mean, variance


class LeaveOneOut(NamedTuple):
    """Predictions of each observation from the others."""

    mean: Array
    """f[n]"""
    deviation: Array
    """f[n]"""


def leave_one_out(params: GPParams, x: Array, y: Array, where: Array) -> LeaveOneOut:
    """Predictions of each observation from all others (Rasmussen and Williams 2006, equations 5.10 to 5.12)."""
    matrix = noisy(covariance(params, x, x), jnp.exp(params.log_noise), where)
    inverse = solve(factor(matrix)[0], jnp.eye(x.shape[0], dtype=x.dtype))
    precision = _precision(inverse)
    return LeaveOneOut(y - matmul(inverse, y) / precision, jnp.sqrt(1.0 / precision))


def _precision(inverse: Array) -> Array:
    return jnp.maximum(jnp.diagonal(inverse), jnp.finfo(inverse.dtype).tiny)


def draw_left_out(params: GPParams, x: Array, y: Array, where: Array, signal: Array, noise: Array) -> Array:
    """Joint draws, at all trials, of the signals of n Gaussian processes of which each leaves one trial out.

    A draw of the prior is moved to the observations (Matheron's rule), and the inverse without a row and a column is
    the whole one less a product (equation 5.12): one factorisation for all n. Signal and noise are f[n, S], standard
    normal numbers for the draws of the prior and for the noise of their observations.

    Returns:
      f[S, n, n]: draw s of the Gaussian process without trial j at trial k.
    """
    kernel, variance = covariance(params, x, x), jnp.exp(params.log_noise)
    lower, _ = factor(noisy(kernel, jnp.zeros((), x.dtype), where), jnp.exp(params.log_scale))
    prior = matmul(lower, signal)
    lower, jitter = factor(noisy(kernel, variance, where))
    inverse = solve(lower, jnp.eye(x.shape[0], dtype=x.dtype))
    variance = variance + jitter
    off = jnp.where(where[:, None], y[:, None] - prior - jnp.sqrt(variance) * noise, 0.0)
    # The kernel's matrix times the inverse.
    smoother = jnp.eye(x.shape[0], dtype=x.dtype) - variance * inverse
    drawn = (prior + matmul(smoother, off)).T
    taken_back = (matmul(inverse, off) / _precision(inverse)[:, None]).T
    return drawn[:, None, :] - taken_back[:, :, None] * smoother[None]
