"""Pair-wise loss: RankNet."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.losses.listwise import rank
from dre_jax.losses.order import RankedList
from dre_jax.losses.weights import PositionWeights
from dre_jax.runtime.jit import jit_eager_calls


@jit_eager_calls("weights")
def ranknet(scores: Array, response: Array, *, where: Array | None = None, weights: PositionWeights = "none") -> Array:
    """RankNet: logistic loss of the score difference, over all pairs that are not tied (Burges et al. 2005).

    Arguments as in `listmle`; a pair has the weight of its better item.

    Example:
      >>> round(float(ranknet(jnp.array([1.0, 0.0]), jnp.array([0.9, 0.1]))), 4)
      0.3133
    """
    return ranknet_ranked(*rank(scores, response, where=where, weights=weights))


def ranknet_ranked(scores: Array, lists: RankedList) -> Array:
    """RankNet of scores in the order of relevance; f32[..., n] and a `RankedList` -> f32[...]. Memory n^2 a list."""
    better = lists.first[..., :, None] < lists.first[..., None, :]
    pair = better & lists.where[..., :, None] & lists.where[..., None, :]
    finite = jnp.where(lists.where, scores, 0.0)
    loss = jax.nn.softplus(finite[..., None, :] - finite[..., :, None])
    return jnp.sum(jnp.where(pair, lists.weight[..., :, None] * loss, 0.0), axis=(-2, -1))
