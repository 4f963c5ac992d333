"""Gaussian process classification by Laplace's approximation (Rasmussen and Williams 2006, sections 3.4 and 5.5.1).

The probability of label 1 at x is Phi(f(x)), with a Gaussian process f of mean zero. Its covariance has a constant in
addition, so that the rate of the labels is learned too. Labels without a pattern have little signal; labels that a
boundary divides have much.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.gp.cholesky import cholesky_inverse, cholesky_solve, safe_cholesky
from dre_jax.gp.fit import GPConfig, clip_hyperparameters, log_hyperprior, maximise_from_starts
from dre_jax.gp.kernels import LOG_2PI
from dre_jax.gp.regression import GPParams, matmul, signal_covariance

FITTING = GPConfig(optimiser="bfgs", steps=12)
"""Search for hyperparameters."""
_CONSTANT_VAR = 4.0
_LOG_SCALE_PRIOR = (2.0, 1.5)
"""Mean and standard deviation of the Gaussian prior of the log signal variance: labels have a pattern."""
_SHORTER = 1.0
"""By which the prior mean of the log length scales is below that of regression: boundaries are local."""
_LENGTH_OF_ONE_LABEL = 0.3
"""Length scale, in units of the square root of the number of columns, of labels that are equal and so tell none."""
_CERTAIN = 50.0
"""Log odds."""
_MAX_NEWTON_STEPS = 20
_TOLERANCE = 1e-6
_SHARES = (1.0, 0.5, 0.25, 0.0625)
"""Of a Newton step."""


class Mode(NamedTuple):
    """The most probable signal at n trials, and the curvature there."""

    signal: Array
    """f[n]"""
    gradient: Array
    """f[n], of the log likelihood; 0 in empty slots."""
    root_precision: Array
    """f[n], square roots of the negative second derivatives; 0 in empty slots."""
    lower: Array
    """f[n, n], lower Cholesky factor of B = I + W^(1/2) K W^(1/2)."""


def latent_covariance(params: GPParams, a: Array, b: Array) -> Array:
    """Returns the covariance of the signal with its constant; f[n, D] and f[m, D] -> f[n, m]."""
    return signal_covariance(params, a, b) + _CONSTANT_VAR


def _derivatives(signal: Array, labels: Array, where: Array) -> tuple[Array, Array, Array, Array]:
    """Returns the log likelihood, a scalar, and its first, minus second and third derivatives, three f[n]."""
    z = labels * signal
    log_cdf = jax.scipy.special.log_ndtr(z)
    ratio = jnp.exp(-0.5 * z**2 - 0.5 * LOG_2PI - log_cdf)
    curvature = jnp.maximum(ratio * (ratio + z), 0.0)
    third = labels * (curvature * (2.0 * ratio + z) - ratio)
    first, curvature, third = (jnp.where(where, a, 0.0) for a in (labels * ratio, curvature, third))
    return jnp.sum(jnp.where(where, log_cdf, 0.0)), first, curvature, third


def find_mode(matrix: Array, labels: Array, where: Array) -> Mode:
    """Returns the mode of the signal's posterior by Newton steps (algorithm 3.1), the longest that improve it.

    Args:
      matrix: f[n, n], covariance of the signal.
      labels: f[n], 1 or -1.
      where: bool[n], the filled slots.
    """
    shares = jnp.asarray(_SHARES, matrix.dtype)[:, None]

    def density(weights: Array, signal: Array) -> Array:
        return _derivatives(signal, labels, where)[0] - 0.5 * matmul(weights, signal)

    def step(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        i, weights, signal, before, _ = carry
        _, gradient, precision, _ = _derivatives(signal, labels, where)
        root = jnp.sqrt(precision)
        lower = _factor(matrix, root)
        right = precision * signal + gradient
        target = right - root * cholesky_solve(lower, root * matmul(matrix, right))
        tries = weights[None] + shares * (target - weights)[None]
        signals = signal[None] + shares * (matmul(matrix, target) - signal)[None]
        densities = jax.vmap(density)(tries, signals)
        best = jnp.argmax(densities)
        return i + 1, tries[best], signals[best], densities[best], densities[best] - before

    def improves(carry: tuple[Array, Array, Array, Array, Array]) -> Array:
        return (carry[0] < _MAX_NEWTON_STEPS) & (carry[4] > _TOLERANCE)

    zeros = jnp.zeros_like(labels)
    start = (jnp.int32(0), zeros, zeros, density(zeros, zeros), jnp.full((), jnp.inf, matrix.dtype))
    _, _, signal, _, _ = lax.while_loop(improves, step, start)
    _, gradient, precision, _ = _derivatives(signal, labels, where)
    root = jnp.sqrt(precision)
    return Mode(signal, gradient, root, _factor(matrix, root))


def _factor(matrix: Array, root: Array) -> Array:
    return safe_cholesky(jnp.eye(len(root), dtype=root.dtype) + root[:, None] * matrix * root[None, :])[0]


@jax.custom_vjp
def log_evidence(matrix: Array, labels: Array, where: Array) -> Array:
    """Returns Laplace's approximation of the log marginal likelihood of labels (equation 3.32), a scalar.

    The gradient is that of equations 5.21 to 5.24. Arguments as in `find_mode`.
    """
    return _forward(matrix, labels, where)[0]


def _forward(matrix: Array, labels: Array, where: Array) -> tuple[Array, tuple[Array, Mode, Array, Array]]:
    mode = find_mode(matrix, labels, where)
    return _evidence_at(mode, labels, where), (matrix, mode, labels, where)


def _evidence_at(mode: Mode, labels: Array, where: Array) -> Array:
    log_likelihood = _derivatives(mode.signal, labels, where)[0]
    fit = log_likelihood - 0.5 * matmul(mode.gradient, mode.signal)
    return fit - jnp.sum(jnp.log(jnp.diagonal(mode.lower)))


def _backward(residuals: tuple[Array, Mode, Array, Array], cotangent: Array) -> tuple[Array, None, None]:
    matrix, mode, labels, where = residuals
    root, gradient = mode.root_precision, mode.gradient
    inverse = root[:, None] * cholesky_inverse(mode.lower) * root[None, :]
    product = matmul(matrix, inverse)
    variance = jnp.diagonal(matrix) - jnp.sum(product * matrix, axis=1)
    by_mode = 0.5 * variance * _derivatives(mode.signal, labels, where)[3]
    implicit = (by_mode - matmul(by_mode, product))[:, None] * gradient[None, :]
    return cotangent * (0.5 * gradient[:, None] * gradient[None, :] - 0.5 * inverse + implicit), None, None


log_evidence.defvjp(_forward, _backward)


def fit_classifier(x: Array, labels: Array, where: Array) -> GPParams:
    """Returns the hyperparameters of the highest posterior density; the noise variance is not used.

    Args:
      x: f[n, D].
      labels: f[n], 1 or -1.
      where: bool[n], the filled slots.
    """
    mean, deviation = _LOG_SCALE_PRIOR

    def objective(params: GPParams) -> Array:
        log_scale = (params.log_scale - mean) / deviation
        prior_params = replace(params, log_scale=log_scale, log_length=params.log_length + _SHORTER)
        prior = log_hyperprior(prior_params, "logarithm")
        return log_evidence(latent_covariance(params, x, x), labels, where) + prior

    def start_at(params: GPParams) -> GPParams:
        return replace(params, log_scale=params.log_scale + mean)

    best = maximise_from_starts(FITTING, objective, start_at, clip_hyperparameters, x)
    local = math.log(_LENGTH_OF_ONE_LABEL) + 0.5 * math.log(x.shape[-1])
    return replace(best, log_length=jnp.where(_has_both(labels, where), best.log_length, local))


def _has_both(labels: Array, where: Array) -> Array:
    return jnp.any(where & (labels > 0.0)) & jnp.any(where & (labels < 0.0))


class Classifier(NamedTuple):
    """A classifier given labels, and a second hypothesis: labels by chance, at one rate everywhere."""

    params: GPParams
    weights: Array
    """f[n]: the most probable signal at x is k(x)' weights."""
    log_odds: Array
    """Scalar: of the classifier against chance."""
    log_rate: Array
    """Scalar: log probability of label 1 by chance."""


def condition_classifier(params: GPParams, x: Array, labels: Array, where: Array) -> Classifier:
    """Returns the classifier of hyperparameters given labels; arguments as in `fit_classifier`.

    The odds are the ratio of the evidences, less a factor of e, as hyperparameters were fitted to the labels. Equal
    labels are not by chance: a search should move on from where all trials failed.
    """
    by_place = find_mode(latent_covariance(params, x, x), labels, where)
    by_chance = find_mode(jnp.full((len(x), len(x)), _CONSTANT_VAR, x.dtype), labels, where)
    log_odds = _evidence_at(by_place, labels, where) - _evidence_at(by_chance, labels, where) - 1.0
    log_odds = jnp.where(_has_both(labels, where), log_odds, _CERTAIN)
    rate = jax.scipy.special.log_ndtr(_CONSTANT_VAR * jnp.sum(by_chance.gradient))
    return Classifier(params, by_place.gradient, log_odds, rate)


def log_probability(classifier: Classifier, x: Array, new: Array) -> Array:
    """Returns the log probability f[m] of label 1 at f[m, D], given labels at f[n, D], by both hypotheses.

    That of the classifier is by the most probable signal. It is a half where the mean over the signals is (equation
    3.77). This mean stays near a tenth however many equal labels are near, as Laplace's approximation has a large
    variance there.
    """
    cross = latent_covariance(classifier.params, x, new)
    by_place = jax.scipy.special.log_ndtr(matmul(classifier.weights, cross))
    log_odds = classifier.log_odds
    by_chance = jax.nn.log_sigmoid(-log_odds) + classifier.log_rate
    return jnp.logaddexp(jax.nn.log_sigmoid(log_odds) + by_place, by_chance)
