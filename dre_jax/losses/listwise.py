"""List-wise losses: ListMLE with position weights (the paper, equation 1) and ListNet.

Example:
  >>> import jax.numpy as jnp
  >>> scores, response = jnp.array([2.0, 0.5, 1.0]), jnp.array([0.9, 0.1, 0.4])
  >>> round(float(listmle(scores, response)), 4)
  0.9384
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.losses.cumulative import cumulative_logsumexp
from dre_jax.losses.order import RankedList, rank_sorted
from dre_jax.losses.weights import PositionWeights
from dre_jax.runtime.jit import jit_eager_calls


@jit_eager_calls("weights")
def listmle(
    scores: Array,
    response: Array,
    *,
    where: Array | None = None,
    weights: PositionWeights = "none",
) -> Array:
    """ListMLE: negative log-likelihood of the order of the responses under the Plackett-Luce model of the scores.

    Xia et al. 2008; with ``weights="inverse_log"`` the weighted loss of the paper (equation 1).

    Args:
      scores: f32[..., n].
      response: f32[..., n], higher is better.
      where: bool[..., n], which slots hold an item; all by default.
      weights: name of the position weights.

    Returns:
      f32[...]: the weighted sum over each list.

    Example:
      >>> round(float(listmle(jnp.array([1.0, 0.0]), jnp.array([0.9, 0.1]))), 4)
      0.3133
    """
    scores, lists = rank(scores, response, where=where, weights=weights)
    return listmle_ranked(scores, lists)


def rank(
    scores: Array,
    response: Array,
    *,
    where: Array | None = None,
    weights: PositionWeights = "none",
) -> tuple[Array, RankedList]:
    """Sorts scores and responses by response, best first; arguments as in `listmle`."""
    where = jnp.ones(response.shape, bool) if where is None else where
    where = jnp.broadcast_to(where, response.shape)
    order = jnp.argsort(jnp.where(where, -response, jnp.inf), axis=-1)
    scores, response, where = (jnp.take_along_axis(a, order, axis=-1) for a in (scores, response, where))
    return scores, rank_sorted(response, response, where, weights)


@jax.custom_vjp
def listmle_ranked(scores: Array, lists: RankedList) -> Array:
    """ListMLE of scores that stand in the order of relevance; f32[..., n] and a `RankedList` -> f32[...]."""
    return _forward(scores, lists)[0]


def _forward(scores: Array, lists: RankedList) -> tuple[Array, tuple[Array, Array, RankedList]]:
    finite = jnp.where(lists.where, scores, 0.0)
    suffix = cumulative_logsumexp(finite, lists.where.astype(scores.dtype), reverse=True)
    denominator = jnp.take_along_axis(suffix, lists.first, axis=-1)
    terms = jnp.where(lists.where, denominator - finite, 0.0)
    return jnp.sum(lists.weight * terms, axis=-1), (finite, denominator, lists)


def _backward(residual: tuple[Array, Array, RankedList], cotangent: Array) -> tuple[Array, None]:
    """Item j stands in the denominators of all items up to the end of its tie group: d/ds_j = sum_i w_i p_ij - w_j."""
    scores, denominator, lists = residual
    opposite = jnp.where(lists.where, -denominator, 0.0)
    prefix = cumulative_logsumexp(opposite, lists.weight, reverse=False)
    share = jnp.exp(scores + jnp.take_along_axis(prefix, lists.last, axis=-1))
    gradient = jnp.where(lists.where, share - lists.weight, 0.0)
    return cotangent[..., None] * gradient, None


listmle_ranked.defvjp(_forward, _backward)


@jit_eager_calls("weights")
def listnet(scores: Array, response: Array, *, where: Array | None = None, weights: PositionWeights = "none") -> Array:
    """ListNet: cross-entropy between the top-one probabilities of the responses and of the scores (Cao et al. 2007).

    Arguments as in `listmle`; the weights are applied to the terms of the sum.

    Example:
      >>> round(float(listnet(jnp.array([2.0, 0.0]), jnp.array([1.0, 1.0]))), 4)
      1.1269
    """
    return listnet_ranked(*rank(scores, response, where=where, weights=weights))


def listnet_ranked(scores: Array, lists: RankedList) -> Array:
    """ListNet of scores in the order of relevance; f32[..., n] and a `RankedList` -> f32[...]."""
    target = jax.nn.softmax(lists.response, axis=-1, where=lists.where)
    finite = jnp.where(lists.where, scores, -jnp.inf)
    top = jax.lax.stop_gradient(jnp.max(finite, axis=-1, keepdims=True))
    shifted = jnp.where(lists.where, scores - jnp.where(jnp.isfinite(top), top, 0.0), 0.0)
    total = jnp.sum(jnp.where(lists.where, jnp.exp(shifted), 0.0), axis=-1, keepdims=True)
    log_probability = shifted - jnp.log(jnp.where(total > 0, total, 1.0))
    return -jnp.sum(jnp.where(lists.where, lists.weight * target * log_probability, 0.0), axis=-1)
