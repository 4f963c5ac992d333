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
from jaxtyping import Bool, Float

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
"""Difference of the prior means of the log length scales of regression and classification: boundaries are local."""
_SINGLE_LABEL_LENGTH = 0.3
"""Length scale, in units of the square root of the number of columns, for equal labels, which do not determine one."""
_CERTAIN = 50.0
"""Log odds."""
_MAX_NEWTON_STEPS = 20
_TOLERANCE = 1e-6
_SHARES = (1.0, 0.5, 0.25, 0.0625)
"""Shares of a Newton step."""


class Likelihood(NamedTuple):
    """The log likelihood of a signal at n trials, and its derivatives; these are 0 in empty slots."""

    value: Float[Array, ""]
    """The log likelihood."""
    gradient: Float[Array, " n"]
    """The first derivatives."""
    precision: Float[Array, " n"]
    """Minus the second derivatives."""
    third: Float[Array, " n"]
    """The third derivatives."""


class Mode(NamedTuple):
    """The most probable signal at n trials, and the curvature there."""

    signal: Float[Array, " n"]
    """The signal at the trials."""
    likelihood: Likelihood
    lower: Float[Array, "n n"]
    """Lower Cholesky factor of B = I + W^(1/2) K W^(1/2) with the precisions W."""


def latent_covariance(params: GPParams, a: Float[Array, "n D"], b: Float[Array, "m D"]) -> Float[Array, "n m"]:
    """Returns the covariance of the signal with its constant."""
    return signal_covariance(params, a, b) + _CONSTANT_VAR


def _likelihood(signal: Float[Array, " n"], labels: Float[Array, " n"], where: Bool[Array, " n"]) -> Likelihood:
    z = labels * signal
    log_cdf = jax.scipy.special.log_ndtr(z)
    ratio = jnp.exp(-0.5 * z**2 - 0.5 * LOG_2PI - log_cdf)
    curvature = jnp.maximum(ratio * (ratio + z), 0.0)
    third = labels * (curvature * (2.0 * ratio + z) - ratio)
    value, *derivatives = (jnp.where(where, a, 0.0) for a in (log_cdf, labels * ratio, curvature, third))
    return Likelihood(jnp.sum(value), *derivatives)


class _Search(NamedTuple):
    weights: Float[Array, " n"]
    """The signal is the covariance times these."""
    signal: Float[Array, " n"]
    likelihood: Likelihood
    density: Float[Array, ""]
    """Log posterior density up to a constant."""


def find_mode(matrix: Float[Array, "n n"], labels: Float[Array, " n"], where: Bool[Array, " n"]) -> Mode:
    """Returns the mode of the signal's posterior by Newton steps (algorithm 3.1), the longest that improve it.

    ``matrix`` is the covariance of the signal, and labels are 1 or -1 in the filled slots.
    """
    shares = jnp.asarray(_SHARES, matrix.dtype)

    def at(weights: Array, signal: Array) -> _Search:
        likelihood = _likelihood(signal, labels, where)
        return _Search(weights, signal, likelihood, likelihood.value - 0.5 * matmul(weights, signal))

    def step(carry: tuple[Array, Array, _Search]) -> tuple[Array, Array, _Search]:
        i, _, (weights, signal, likelihood, before) = carry
        root = jnp.sqrt(likelihood.precision)
        right = likelihood.precision * signal + likelihood.gradient
        target = right - root * cholesky_solve(_factor(matrix, root), root * matmul(matrix, right))
        weight_change, signal_change = target - weights, matmul(matrix, target) - signal
        tries = jax.vmap(lambda share: at(weights + share * weight_change, signal + share * signal_change))(shares)
        best = jnp.argmax(tries.density)
        search: _Search = jax.tree.map(lambda a: a[best], tries)
        return i + 1, search.density - before, search

    def improves(carry: tuple[Array, Array, _Search]) -> Array:
        return (carry[0] < _MAX_NEWTON_STEPS) & (carry[1] > _TOLERANCE)

    zeros = jnp.zeros_like(labels)
    start = (jnp.int32(0), jnp.full((), jnp.inf, matrix.dtype), at(zeros, zeros))
    search = lax.while_loop(improves, step, start)[2]
    return Mode(search.signal, search.likelihood, _factor(matrix, jnp.sqrt(search.likelihood.precision)))


def _factor(matrix: Float[Array, "n n"], root: Float[Array, " n"]) -> Float[Array, "n n"]:
    return safe_cholesky(jnp.eye(len(root), dtype=root.dtype) + root[:, None] * matrix * root[None, :])[0]


@jax.custom_vjp
def log_evidence(matrix: Float[Array, "n n"], labels: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    """Returns Laplace's approximation of the log marginal likelihood of labels (equation 3.32).

    The gradient is that of equations 5.21 to 5.24. Arguments as in `find_mode`.
    """
    return _forward(matrix, labels, where)[0]


def _forward(
    matrix: Float[Array, "n n"], labels: Float[Array, " n"], where: Bool[Array, " n"]
) -> tuple[Float[Array, ""], tuple[Float[Array, "n n"], Mode]]:
    mode = find_mode(matrix, labels, where)
    return _evidence_at(mode), (matrix, mode)


def _evidence_at(mode: Mode) -> Float[Array, ""]:
    fit = mode.likelihood.value - 0.5 * matmul(mode.likelihood.gradient, mode.signal)
    return fit - jnp.sum(jnp.log(jnp.diagonal(mode.lower)))


def _backward(
    residuals: tuple[Float[Array, "n n"], Mode], cotangent: Float[Array, ""]
) -> tuple[Float[Array, "n n"], None, None]:
    matrix, (_, likelihood, lower) = residuals
    root, gradient = jnp.sqrt(likelihood.precision), likelihood.gradient
    inverse = root[:, None] * cholesky_inverse(lower) * root[None, :]
    product = matmul(matrix, inverse)
    variance = jnp.diagonal(matrix) - jnp.sum(product * matrix, axis=1)
    by_mode = 0.5 * variance * likelihood.third
    implicit = (by_mode - matmul(by_mode, product))[:, None] * gradient[None, :]
    return cotangent * (0.5 * gradient[:, None] * gradient[None, :] - 0.5 * inverse + implicit), None, None


log_evidence.defvjp(_forward, _backward)


def fit_classifier(x: Float[Array, "n D"], labels: Float[Array, " n"], where: Bool[Array, " n"]) -> GPParams:
    """Returns the hyperparameters of the highest posterior density, for labels of 1 or -1 at ``x``.

    The noise variance is not used.
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
    local = math.log(_SINGLE_LABEL_LENGTH) + 0.5 * math.log(x.shape[-1])
    return replace(best, log_length=jnp.where(_has_both_labels(labels, where), best.log_length, local))


def _has_both_labels(labels: Float[Array, " n"], where: Bool[Array, " n"]) -> Bool[Array, ""]:
    return jnp.any(where & (labels > 0.0)) & jnp.any(where & (labels < 0.0))


class Classifier(NamedTuple):
    """A classifier given labels, and a second hypothesis: labels by chance, at one rate everywhere."""

    params: GPParams
    weights: Float[Array, " n"]
    """The most probable signal at x is k(x)' weights."""
    log_odds: Float[Array, ""]
    """Log odds of the classifier against chance."""
    log_rate: Float[Array, ""]
    """Log probability of label 1 by chance."""


def condition_classifier(
    params: GPParams, x: Float[Array, "n D"], labels: Float[Array, " n"], where: Bool[Array, " n"]
) -> Classifier:
    """Returns the classifier of hyperparameters given labels; arguments as in `fit_classifier`.

    The odds are the ratio of the evidences, less a factor of e, as hyperparameters were fitted to the labels. Equal
    labels do not count as chance: a search should move on from where all trials failed.
    """
    covariance = latent_covariance(params, x, x)
    hypotheses = jnp.stack([covariance, jnp.full_like(covariance, _CONSTANT_VAR)])
    modes = jax.vmap(find_mode, in_axes=(0, None, None))(hypotheses, labels, where)
    evidence, gradient = jax.vmap(_evidence_at)(modes), modes.likelihood.gradient
    log_odds = jnp.where(_has_both_labels(labels, where), evidence[0] - evidence[1] - 1.0, _CERTAIN)
    rate = jax.scipy.special.log_ndtr(_CONSTANT_VAR * jnp.sum(gradient[1]))
    return Classifier(params, gradient[0], log_odds, rate)


def log_probability(classifier: Classifier, x: Float[Array, "n D"], new: Float[Array, "m D"]) -> Float[Array, " m"]:
    """Returns the log probability of label 1 at new points, given labels at ``x``, by both hypotheses.

    The classifier's probability is that of the most probable signal. It is a half where the mean over the signals is
    (equation 3.77). This mean stays near a tenth however many equal labels are near, as Laplace's approximation has a
    large variance there.
    """
    cross = latent_covariance(classifier.params, x, new)
    by_signal = jax.scipy.special.log_ndtr(matmul(classifier.weights, cross))
    log_odds = classifier.log_odds
    by_chance = jax.nn.log_sigmoid(-log_odds) + classifier.log_rate
    return jnp.logaddexp(jax.nn.log_sigmoid(log_odds) + by_signal, by_chance)
