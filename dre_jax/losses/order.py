"""Lists in order of relevance, best first, with their ties and the weight of each position.

Everything that depends only on the responses is computed here, once a list. A training step only reads it.
"""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Real

from dre_jax.checks import one_of
from dre_jax.losses.cumulative import running_sum

PositionWeights = Literal["inverse_log", "inverse_linear", "attention", "none"]


class RankedList(NamedTuple):
    """A list sorted by response, best first; batch dimensions may precede n."""

    response: Float[Array, "*batch n"]
    """The responses."""
    where: Bool[Array, "*batch n"]
    """Which slots hold an item."""
    weight: Float[Array, "*batch n"]
    """Weight of each position; tied items share the mean of theirs; zero in empty slots."""
    first: Int[Array, "*batch n"]
    """Index of the first item of the tie group."""
    last: Int[Array, "*batch n"]
    """Index of the last item of the tie group."""


def position_weights(
    kind: PositionWeights, position: Float[Array, "*batch n"], length: Float[Array, "*#batch #n"] | Float[Array, ""]
) -> Float[Array, "*batch n"]:
    """Weight of each position of a list (the paper, appendix C); position 1 is the best.

    "inverse_log" is 1/ln(j+1), "inverse_linear" 1/j, "attention" (k-j+1) / (1+...+k) for lists of `length` k, "none" 1.
    Positions j count from 1; smaller ones, of empty slots ahead of the first item, are read as 1.

    Raises:
      ConfigError: for an unknown kind.

    Example:
      >>> position_weights("inverse_linear", jnp.arange(1.0, 5.0), jnp.array(4.0)).tolist()
      [1.0, 0.5, 0.3333333432674408, 0.25]
    """
    one_of("position weights", kind, get_args(PositionWeights))
    j = jnp.maximum(position, 1.0)
    if kind == "inverse_log":
        return 1.0 / jnp.log(j + 1.0)
    if kind == "inverse_linear":
        return 1.0 / j
    if kind == "attention":
        k = jnp.maximum(length, 1.0)
        return (k - j + 1.0) / (k * (k + 1.0) / 2.0)
    return jnp.ones_like(j)


def tie_bounds(level: Real[Array, "*batch n"]) -> tuple[Int[Array, "*batch n"], Int[Array, "*batch n"]]:
    """Returns the first and last index of each item's run of equal levels; levels are sorted."""
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


def _mean_over_ties(
    weight: Float[Array, "*batch n"],
    position: Float[Array, "*batch n"],
    where: Bool[Array, "*batch n"],
    first: Int[Array, "*batch n"],
    last: Int[Array, "*batch n"],
) -> Float[Array, "*batch n"]:
    """Gives each item the mean weight of its tie group, empty slots not counted."""

    def group_sum(values: Array, running: Array) -> Array:
        return _take(running, last) - _take(running, first) + _take(values, first)

    count = group_sum(where.astype(position.dtype), position)
    return jnp.where(where, group_sum(weight, running_sum(weight)) / jnp.maximum(count, 1.0), 0.0)


def _take(values: Float[Array, "*batch n"], index: Int[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    return jnp.take_along_axis(values, index, axis=-1)


def rank_sorted(
    response: Float[Array, "*batch n"],
    level: Real[Array, "*batch n"],
    where: Bool[Array, "*batch n"],
    weights: PositionWeights = "inverse_log",
) -> RankedList:
    """Makes a `RankedList` of items that are sorted already.

    Tied items share one denominator and their mean weight (Breslow), so that their order cannot matter.

    Args:
      response: best first; an empty slot may stand anywhere but between tied items.
      level: equal exactly where responses are tied.
      where: which slots hold an item.
      weights: name of the position weights.

    Returns:
      A `RankedList` with the same leading dimensions.

    Raises:
      ConfigError: for unknown weights.

    Example:
      >>> response, level = jnp.array([0.9, 0.4, 0.4]), jnp.array([0, 1, 1])
      >>> rank_sorted(response, level, jnp.ones(3, bool), "inverse_linear").weight.round(3).tolist()
      [1.0, 0.417, 0.417]
    """
    position = running_sum(where.astype(jnp.float32))
    length = jnp.sum(where, axis=-1, keepdims=True, dtype=jnp.float32)
    weight = jnp.where(where, position_weights(weights, position, length), 0.0)
    first, last = tie_bounds(level)
    return RankedList(response, where, _mean_over_ties(weight, position, where, first, last), first, last)
