"""Point-wise ranking loss: subset regression."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dre_jax.losses.listwise import rank
from dre_jax.losses.order import RankedList
from dre_jax.losses.weights import PositionWeights
from dre_jax.runtime.jit import jit_eager_calls


@jit_eager_calls("weights")
def subset_regression(
    scores: Array, response: Array, *, where: Array | None = None, weights: PositionWeights = "none"
) -> Array:
    """Subset regression: squared distance between the score, scaled by the list's length, and the relevance level.

    Cossock and Zhang 2008; the level is n + 1 - rank, so that the best of n items has level n, and ties share the mean.
    Arguments as in `listmle`. Returns the weighted mean over each list; 0 for an empty one.

    Example:
      >>> float(subset_regression(jnp.array([1.0, 0.5]), jnp.array([0.9, 0.1])))
      0.0
    """
    return subset_regression_ranked(*rank(scores, response, where=where, weights=weights))


def subset_regression_ranked(scores: Array, lists: RankedList) -> Array:
    """Subset regression of scores in the order of relevance; f32[..., n] and a `RankedList` -> f32[...]."""
    position = jnp.cumsum(lists.where, axis=-1, dtype=scores.dtype)
    group_start = jnp.take_along_axis(position - lists.where.astype(scores.dtype), lists.first, axis=-1) + 1.0
    group_end = jnp.take_along_axis(position, lists.last, axis=-1)
    count = jnp.sum(lists.where, axis=-1, keepdims=True, dtype=scores.dtype)
    level = count + 1.0 - (group_start + group_end) / 2.0
    error = jnp.where(lists.where, count * scores - level, 0.0)
    return jnp.sum(lists.weight * error**2, axis=-1) / jnp.maximum(count[..., 0], 1.0)
