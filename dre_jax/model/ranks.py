"""Ranks of scores: the ensemble's outputs on a common scale (the paper, section 3.2)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.losses.order import tie_bounds


def mean_tie_ranks(scores: Array, where: Array) -> Array:
    """Rank of each score within its row, 1 is the highest, ties share the mean rank.

    Args:
      scores: f32[..., n].
      where: bool[..., n]; empty slots stand behind all others.

    Returns:
      f32[..., n]; meaningless in empty slots.

    Example:
      >>> mean_tie_ranks(jnp.array([0.1, 0.7, 0.7, 0.3]), jnp.ones(4, bool)).tolist()
      [4.0, 1.5, 1.5, 3.0]
    """
    axis = scores.ndim - 1
    index = jnp.broadcast_to(jnp.arange(scores.shape[-1], dtype=jnp.int32), scores.shape)
    keys = jnp.where(where, -scores, jnp.inf)
    in_order, order = jax.lax.sort((keys, index), dimension=axis, num_keys=1)
    first, last = tie_bounds(in_order)
    rank_in_order = (first + last).astype(scores.dtype) / 2.0 + 1.0
    # Sorting the ranks by where they came from undoes the order; a scatter would do the same, slower.
    return jax.lax.sort((order, rank_in_order), dimension=axis, num_keys=1)[1]


def mean_and_deviation(ranks: Array) -> tuple[Array, Array]:
    """Mean and standard deviation over members; f32[M, n] -> two f32[n]."""
    return jnp.mean(ranks, axis=0), jnp.std(ranks, axis=0)
