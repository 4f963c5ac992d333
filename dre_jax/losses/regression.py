"""Regression losses: mean squared error and the Gaussian likelihood of deep ensembles."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dre_jax.losses.listwise import rank
from dre_jax.losses.order import RankedList
from dre_jax.losses.weights import PositionWeights
from dre_jax.runtime.jit import jit_eager_calls


@jit_eager_calls("weights")
def mean_squared_error(
    scores: Array, response: Array, *, where: Array | None = None, weights: PositionWeights = "none"
) -> Array:
    """Mean squared error between scores and responses: the weighted mean over each list; 0 for an empty one.

    Arguments as in `listmle`.

    Example:
      >>> float(mean_squared_error(jnp.array([1.0, 0.0]), jnp.array([0.0, 0.0])))
      0.5
    """
    return mean_squared_error_ranked(*rank(scores, response, where=where, weights=weights))


def mean_squared_error_ranked(scores: Array, lists: RankedList) -> Array:
    """Mean squared error of scores in the order of relevance; f32[..., n] and a `RankedList` -> f32[...]."""
    error = jnp.where(lists.where, scores - lists.response, 0.0)
    return _weighted_mean(error**2, lists)


@jit_eager_calls("weights")
def gaussian_nll(
    mean: Array,
    response: Array,
    *,
    variance: Array,
    where: Array | None = None,
    weights: PositionWeights = "none",
) -> Array:
    """Negative log-likelihood of a Gaussian with its own variance per item (Lakshminarayanan et al. 2017, equation 1).

    The weighted mean over each list of ln(variance)/2 + (response - mean)^2 / (2 variance), without the constant; 0 for
    an empty one. Arguments as in `listmle`; the variance is f32[..., n], positive.

    Example:
      >>> float(gaussian_nll(jnp.array([1.0]), jnp.array([0.0]), variance=jnp.array([1.0])))
      0.5
    """
    mean, lists = rank(mean, response, where=where, weights=weights)
    # The second sort sees the same responses, so it gives the same order.
    variance, _ = rank(variance, response, where=where, weights=weights)
    safe = jnp.where(lists.where, variance, 1.0)
    mean, target = (jnp.where(lists.where, a, 0.0) for a in (mean, lists.response))
    return _weighted_mean(gaussian_nll_of(mean, target, safe), lists)


def gaussian_nll_of(mean: Array, response: Array, variance: Array) -> Array:
    """Returns ln(variance)/2 + (response - mean)^2 / (2 variance) of each item; shapes broadcast.

    Example:
      >>> float(gaussian_nll_of(jnp.float32(1.0), jnp.float32(3.0), jnp.float32(1.0)))
      2.0
    """
    return jnp.log(variance) / 2.0 + (response - mean) ** 2 / (2.0 * variance)


def _weighted_mean(terms: Array, lists: RankedList) -> Array:
    count = jnp.sum(lists.where, axis=-1, dtype=terms.dtype)
    return jnp.sum(lists.weight * jnp.where(lists.where, terms, 0.0), axis=-1) / jnp.maximum(count, 1.0)
