"""Gaussian process regression on histories with empty slots (Rasmussen and Williams 2006, chapters 2 and 5).

Every function computes one Gaussian process in float32 or float64; `jax.vmap` maps it over many. A history of n slots
consists of configurations `x`, responses `y`, standardised and 0 in empty slots, and `where`, the filled slots. Matrix
products use the highest precision, because factorisations and differences follow them and accelerators round their
inputs to a few bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dre_jax.gp.cholesky import apply_inverse_factor, cholesky_inverse, cholesky_solve, prepare_factor, safe_cholesky
from dre_jax.gp.kernels import LOG_2PI, Kernel, correlation, squared_distances
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_eager_calls

matmul = partial(jnp.matmul, precision="highest")
"""Matrix product whose inputs are not rounded."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GPParams:
    """Log hyperparameters of a Gaussian process with a length scale for each column, and its kernel."""

    log_length: Float[Array, " D"]
    """Length scales."""
    log_scale: Float[Array, ""]
    """Signal variance."""
    log_noise: Float[Array, ""]
    """Noise variance."""
    kernel: Kernel = field(default="matern52", metadata={"static": True})
    """Correlation function of the signal."""


def signal_covariance(params: GPParams, a: Float[Array, "n D"], b: Float[Array, "m D"]) -> Float[Array, "n m"]:
    """Returns the covariance of the signal at two sets of points."""
    inverse = jnp.exp(-params.log_length)[None, :]
    return jnp.exp(params.log_scale) * correlation(params.kernel, squared_distances(a * inverse, b * inverse))


def add_noise(
    matrix: Float[Array, "n n"], noise: Float[Array, ""] | Float[Array, " n"], where: Bool[Array, " n"]
) -> Float[Array, "n n"]:
    """Returns the covariance of observations, from that of the signal and the noise variance.

    Empty slots have the rows and columns of the identity, so that they do not change any result.
    """
    n = where.shape[0]
    diagonal = jnp.where(where, jnp.broadcast_to(noise, (n,)), 1.0)
    return jnp.where(where[:, None] & where[None, :], matrix, 0.0) + jnp.diag(diagonal)


def observation_noise(
    log_noise_var: Float[Array, ""], noise_var: Float[Array, " n"] | None
) -> Float[Array, ""] | Float[Array, " n"]:
    """Returns the noise variance of observations: that of the process, or one of each with known error variances."""
    noise = jnp.exp(log_noise_var)
    return noise if noise_var is None else noise + noise_var


@jax.custom_vjp
def log_gaussian_density(
    matrix: Float[Array, "n n"], y: Float[Array, " n"], where: Bool[Array, " n"]
) -> Float[Array, ""]:
    """Returns the log-density of observations under a Gaussian of mean zero (equation 5.8).

    The covariance is that of `add_noise`, and the observations are 0 in empty slots. The gradient uses the factor of
    the forward pass with its jitter, and costs one inverse.
    """
    return _forward(matrix, y, where)[0]


_Residuals = tuple[Float[Array, "n n"], Float[Array, " n"], Bool[Array, " n"]]
"""The Cholesky factor, the fields `ConditionedGP.weights` and `ConditionedGP.where`."""


def _forward(
    matrix: Float[Array, "n n"], y: Float[Array, " n"], where: Bool[Array, " n"]
) -> tuple[Float[Array, ""], _Residuals]:
    lower, _ = safe_cholesky(matrix)
    weights = cholesky_solve(lower, y)
    count = jnp.sum(where, dtype=y.dtype)
    value = -0.5 * matmul(y, weights) - jnp.sum(jnp.log(jnp.diagonal(lower))) - 0.5 * count * LOG_2PI
    return value, (lower, weights, where)


def _backward(
    residuals: _Residuals, cotangent: Float[Array, ""]
) -> tuple[Float[Array, "n n"], Float[Array, " n"], None]:
    lower, weights, where = residuals
    inverse = cholesky_inverse(lower)
    pair_mask = where[:, None] & where[None, :]
    matrix_gradient = jnp.where(pair_mask, 0.5 * (weights[:, None] * weights[None, :] - inverse), 0.0)
    return cotangent * matrix_gradient, -cotangent * weights, None


log_gaussian_density.defvjp(_forward, _backward)


def _observation_covariance(
    params: GPParams, x: Float[Array, "n D"], where: Bool[Array, " n"], noise_var: Float[Array, " n"] | None
) -> Float[Array, "n n"]:
    return add_noise(signal_covariance(params, x, x), observation_noise(params.log_noise, noise_var), where)


def log_marginal_likelihood(
    params: GPParams,
    x: Float[Array, "n D"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    noise_var: Float[Array, " n"] | None = None,
) -> Float[Array, ""]:
    """Returns the log marginal likelihood of a history (equation 5.8).

    Args:
      params: hyperparameters.
      x: configurations.
      y: responses.
      where: the filled slots.
      noise_var: known error variances of single responses, in addition to the process's noise; None for none.
    """
    return log_gaussian_density(_observation_covariance(params, x, where, noise_var), y, where)


class ConditionedGP(NamedTuple):
    """A Gaussian process conditioned on a history; a prediction needs this and the kernel."""

    lower: Float[Array, "n n"]
    """Lower Cholesky factor L of the covariance of the observations."""
    weights: Float[Array, " n"]
    """The solution of (L L^T) w = y."""
    where: Bool[Array, " n"]
    """The filled slots."""


def condition_gp(matrix: Float[Array, "n n"], y: Float[Array, " n"], where: Bool[Array, " n"]) -> ConditionedGP:
    """Conditions a Gaussian process on observations; arguments as in `log_gaussian_density`."""
    lower, _ = safe_cholesky(matrix)
    return ConditionedGP(lower, cholesky_solve(lower, y), where)


class PreparedGP(NamedTuple):
    """A Gaussian process conditioned on a history, in the form that predicts block by block."""

    factor: Float[Array, "n n"]
    """The result of `prepare_factor`."""
    weights: Float[Array, " n"]
    """As in `ConditionedGP`."""
    where: Bool[Array, " n"]
    """The filled slots."""


def prepare_gp(gp: ConditionedGP) -> PreparedGP:
    """Prepares a Gaussian process for `predict_signal`. Call it outside of the blocks, because a TPU inverts L here."""
    return PreparedGP(prepare_factor(gp.lower), gp.weights, gp.where)


def predict_signal(
    prepared_gp: PreparedGP, cross: Float[Array, "n m"], prior: Float[Array, " m"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Returns the posterior mean and variance of the signal at new points (equations 2.25 and 2.26).

    ``cross`` is the prior covariance of the observed and the new points, and ``prior`` the prior variance of the new
    points. The posterior variance is at least this times the machine epsilon.
    """
    cross = jnp.where(prepared_gp.where[:, None], cross, 0.0)
    reduction = jnp.sum(apply_inverse_factor(prepared_gp.factor, cross) ** 2, axis=0)
    min_variance = prior * jnp.finfo(prior.dtype).eps
    return matmul(prepared_gp.weights, cross), jnp.maximum(prior - reduction, min_variance)


def predict_signal_at(
    params: GPParams, x: Float[Array, "n D"], prepared_gp: PreparedGP, new: Float[Array, "m D"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Returns the posterior mean and variance of the signal at new points, given observations at ``x``."""
    prior = jnp.broadcast_to(jnp.exp(params.log_scale), new.shape[:1])
    return predict_signal(prepared_gp, signal_covariance(params, x, new), prior)


@jit_eager_calls()
def gp_posterior(
    params: GPParams,
    x: Float[Array, "n D"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    new: Float[Array, "m D"],
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Returns the posterior mean and variance of the signal at new points given a history.

    Args:
      params: hyperparameters.
      x: configurations.
      y: responses.
      where: the filled slots.
      new: any number of points.

    Example:
      >>> params = GPParams(jnp.zeros(1), jnp.float32(0.0), jnp.float32(-9.0))
      >>> new = jnp.array([[0.0], [9.0]])
      >>> mean, variance = gp_posterior(params, jnp.zeros((1, 1)), jnp.ones(1), jnp.ones(1, bool), new)
      >>> mean.round(2).tolist(), variance.round(2).tolist()
      ([1.0, 0.0], [0.0, 1.0])
    """
    return predict_in_blocks(params, x, condition_on_history(params, x, y, where), new)


def condition_on_history(
    params: GPParams,
    x: Float[Array, "n D"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    noise_var: Float[Array, " n"] | None = None,
) -> PreparedGP:
    """Returns the process conditioned on a history, prepared for `predict_in_blocks`; see `log_marginal_likelihood`."""
    y = jnp.where(where, y, 0.0)
    return prepare_gp(condition_gp(_observation_covariance(params, x, where, noise_var), y, where))


def predict_in_blocks(
    params: GPParams, x: Float[Array, "n D"], prepared_gp: PreparedGP, new: Float[Array, "m D"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Returns `predict_signal_at` of any number of points."""
    return by_blocks(partial(predict_signal_at, params, x, prepared_gp), new)


class LeaveOneOut(NamedTuple):
    """Prediction of each observation from the others."""

    mean: Float[Array, " n"]
    """Means."""
    deviation: Float[Array, " n"]
    """Standard deviations."""


def leave_one_out(
    params: GPParams, x: Float[Array, "n D"], y: Float[Array, " n"], where: Bool[Array, " n"]
) -> LeaveOneOut:
    """Returns predictions of each observation from all others (Rasmussen and Williams 2006, equations 5.10 to 5.12)."""
    matrix = _observation_covariance(params, x, where, None)
    inverse = cholesky_solve(safe_cholesky(matrix)[0], jnp.eye(x.shape[0], dtype=x.dtype))
    precision = _precision(inverse)
    return LeaveOneOut(y - matmul(inverse, y) / precision, jnp.sqrt(1.0 / precision))


def _precision(inverse: Float[Array, "n n"]) -> Float[Array, " n"]:
    return jnp.maximum(jnp.diagonal(inverse), jnp.finfo(inverse.dtype).tiny)


def sample_leave_one_out(
    params: GPParams,
    x: Float[Array, "n D"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    signal: Float[Array, "n S"],
    noise: Float[Array, "n S"],
) -> Float[Array, "S n n"]:
    """Draws joint samples at all n trials of n processes; each process is conditioned on n - 1 trials.

    Entry [s, j, k] is sample s of the process without trial j, at trial k. ``signal`` and ``noise`` are standard normal
    numbers for S samples of the prior and for the noise of the observations. Matheron's rule conditions a sample of the
    prior on the observations. The inverse without one row and column is a rank-one update of the whole inverse
    (equation 5.12), so that one factorisation serves all n processes.
    """
    kernel, variance = signal_covariance(params, x, x), jnp.exp(params.log_noise)
    lower, _ = safe_cholesky(add_noise(kernel, jnp.zeros((), x.dtype), where), jnp.exp(params.log_scale))
    prior = matmul(lower, signal)
    lower, jitter = safe_cholesky(add_noise(kernel, variance, where))
    inverse = cholesky_solve(lower, jnp.eye(x.shape[0], dtype=x.dtype))
    variance = variance + jitter
    residual = jnp.where(where[:, None], y[:, None] - prior - jnp.sqrt(variance) * noise, 0.0)
    # The kernel's matrix times the inverse.
    smoother = jnp.eye(x.shape[0], dtype=x.dtype) - variance * inverse
    samples = (prior + matmul(smoother, residual)).T
    correction = (matmul(inverse, residual) / _precision(inverse)[:, None]).T
    return samples[:, None, :] - correction[:, :, None] * smoother[None]
