"""Bayesian linear regression on features (Bishop 2006, section 3.3), its two precisions by the evidence.

y = phi' w + noise with w ~ N(0, I / alpha) and noise ~ N(0, 1 / beta) is a Gaussian process with the covariance
phi' phi / alpha. The functions of `dre_jax.gp` compute it on matrices of the size of the history. In exact arithmetic
the result equals that of the posterior of the weights. A history has features f[n, F] in place of columns.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.regression import (
    PreparedGP,
    add_noise,
    condition_gp,
    log_gaussian_density,
    matmul,
    predict_signal,
    prepare_gp,
)
from dre_jax.optim.descent import maximise


class LinearParams(NamedTuple):
    """Logarithms of the two precisions."""

    log_alpha: Array
    """Scalar: precision of the weights."""
    log_beta: Array
    """Scalar: precision of the noise."""


_LOG_ALPHAS = (-7.0, 12.0)
_LOG_BETAS = (-3.0, 10.0)
_STEPS, _LEARNING_RATE = 50, 0.3
# Features that were trained on the same responses overfit them, and the evidence is overconfident. The priors are
# therefore narrow: with wide ones (4 and 3) the search stops exploring.
_PRIOR_LOG_BETA = 2.0
_PRIOR_DEVIATION = 0.3


def linear_covariance(params: LinearParams, a: Array, b: Array) -> Array:
    """Returns the covariance of phi' w; f[n, F] and f[m, F] -> f[n, m]."""
    return matmul(a, b.T) * jnp.exp(-params.log_alpha)


def linear_log_evidence(params: LinearParams, features: Array, y: Array, where: Array) -> Array:
    """Returns the log marginal likelihood of a history with features f[n, F] (Bishop, equation 3.86)."""
    return log_gaussian_density(
        add_noise(linear_covariance(params, features, features), jnp.exp(-params.log_beta), where), y, where
    )


def fit_linear(features: Array, y: Array, where: Array) -> LinearParams:
    """Returns the precisions of the highest posterior density."""
    # At the prior mean, the signal has the variance of the responses, which is one.
    count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)
    size = jnp.sum(jnp.where(where[:, None], features, 0.0) ** 2) / count
    prior_mean = LinearParams(jnp.log(jnp.maximum(size, 1e-3)), jnp.full((), _PRIOR_LOG_BETA, y.dtype))

    def objective(params: LinearParams) -> Array:
        squares = (params.log_alpha - prior_mean.log_alpha) ** 2 + (params.log_beta - prior_mean.log_beta) ** 2
        return linear_log_evidence(params, features, y, where) - 0.5 * squares / _PRIOR_DEVIATION**2

    def project(params: LinearParams) -> LinearParams:
        return LinearParams(jnp.clip(params.log_alpha, *_LOG_ALPHAS), jnp.clip(params.log_beta, *_LOG_BETAS))

    start = project(prior_mean)
    return maximise(objective, start, steps=_STEPS, learning_rate=_LEARNING_RATE, project=project)[0]


class LinearPosterior(NamedTuple):
    """A regression given a history."""

    params: LinearParams
    features: Array
    """f[n, F]"""
    prepared: PreparedGP
    """The Gaussian process of the responses."""


def condition_linear(params: LinearParams, features: Array, y: Array, where: Array) -> LinearPosterior:
    """Conditions the regression on a history."""
    matrix = add_noise(linear_covariance(params, features, features), jnp.exp(-params.log_beta), where)
    return LinearPosterior(params, features, prepare_gp(condition_gp(matrix, y, where)))


def predict_linear(posterior: LinearPosterior, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of phi' w at f[m, F], two f[m] (Bishop, equations 3.58 and 3.59 less the noise)."""
    prior = jnp.sum(new**2, axis=-1) * jnp.exp(-posterior.params.log_alpha)
    return predict_signal(posterior.prepared, linear_covariance(posterior.params, posterior.features, new), prior)
