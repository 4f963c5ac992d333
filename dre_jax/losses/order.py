"""Lists in order of relevance, best first, with their ties and the weight of each position.

Everything that depends on the responses alone is worked out here, once a list: a training step only reads it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.errors import ConfigError
from dre_jax.losses.cumulative import running_sum
from dre_jax.losses.weights import PositionWeights, position_weights

Ties = Literal["breslow", "shuffle"]


class RankedList(NamedTuple):
    """A list sorted by response, best first; batch dimensions may stand in front of n."""

    response: Array
    """f32[..., n]: the responses."""
    where: Array
    """bool[..., n]: which slots hold an item."""
    weight: Array
    """f32[..., n]: weight of each position; tied items share the mean of theirs; zero in empty slots."""
    first: Array
    """i32[..., n]: index of the first item of the tie group."""
    last: Array
    """i32[..., n]: index of the last item of the tie group."""


def tie_bounds(level: Array) -> tuple[Array, Array]:
    """Returns the first and last index of each item's run of equal levels, two i32[..., n]; levels are sorted."""
    n = level.shape[-1]
    index = jnp.arange(n, dtype=jnp.int32)
    ends = jnp.ones((*level.shape[:-1], 1), bool)
    change = level[..., 1:] != level[..., :-1]
    starts_here = jnp.concatenate([ends, change], axis=-1)
    ends_here = jnp.concatenate([change, ends], axis=-1)
    axis = level.ndim - 1
    grid = jnp.broadcast_to(index, level.shape)
    first = jax.lax.cummax(jnp.where(starts_here, grid, 0), axis=axis)
    last = jax.lax.cummin(jnp.where(ends_here, grid, n - 1), axis=axis, reverse=True)
    return first, last


def _mean_over_ties(weight: Array, position: Array, where: Array, first: Array, last: Array) -> Array:
    """Gives each item the mean weight of its tie group, empty slots not counted."""

    def group_sum(values: Array, running: Array) -> Array:
        return _take(running, last) - _take(running, first) + _take(values, first)

    count = group_sum(where.astype(position.dtype), position)
    return jnp.where(where, group_sum(weight, running_sum(weight)) / jnp.maximum(count, 1.0), 0.0)


def _take(values: Array, index: Array) -> Array:
    return jnp.take_along_axis(values, index, axis=-1)


def rank_sorted(
    response: Array,
    level: Array,
    where: Array,
    weights: PositionWeights = "inverse_log",
    ties: Ties = "breslow",
) -> RankedList:
    """Makes a `RankedList` of items that are sorted already.

    Args:
      response: f32[..., n], best first; an empty slot may stand anywhere but between tied items.
      level: [..., n], equal exactly where responses are tied.
      where: bool[..., n].
      weights: name of the position weights.
      ties: "breslow" lets tied items share one denominator and their mean weight, so that their order cannot matter;
        "shuffle" takes the order as drawn (the caller shuffled tied items by key).

    Returns:
      A `RankedList` with the same leading dimensions.

    Raises:
      ConfigError: for unknown weights or another rule for ties.

    Example:
      >>> response, level = jnp.array([0.9, 0.4, 0.4]), jnp.array([0, 1, 1])
      >>> rank_sorted(response, level, jnp.ones(3, bool), "inverse_linear").weight.round(3).tolist()
      [1.0, 0.417, 0.417]
    """
    position = running_sum(where.astype(jnp.float32))
    length = jnp.sum(where, axis=-1, keepdims=True, dtype=jnp.float32)
    weight = jnp.where(where, position_weights(weights, position, length), 0.0)
    if ties == "breslow":
        first, last = tie_bounds(level)
        weight = _mean_over_ties(weight, position, where, first, last)
    elif ties == "shuffle":
        index = jnp.broadcast_to(jnp.arange(level.shape[-1], dtype=jnp.int32), level.shape)
        first = last = index
    else:
        raise ConfigError(f"ties must be 'breslow' or 'shuffle', but got {ties!r}")
    return RankedList(response, where, weight, first, last)


def sort_by_response(response: Array, where: Array, key: Array | None = None) -> Array:
    """Returns indices i32[..., n] that put the best response first and empty slots last.

    Equal responses come in random order, or without a key in the order given.
    """
    axis = response.ndim - 1
    descending = jnp.where(where, -response, jnp.inf)
    if key is None:
        return jnp.argsort(descending, axis=-1).astype(jnp.int32)
    index = jnp.broadcast_to(jnp.arange(response.shape[-1], dtype=jnp.int32), response.shape)
    coin = jax.random.uniform(key, response.shape)
    return jax.lax.sort((descending, coin, index), dimension=axis, num_keys=2)[2]
