"""Trials that still run: what a method is told of them while it suggests the next one."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dre_jax.search.history import History

LIES = ("min", "mean", "max", "none")


def with_pending(history: History, x: Array, pending: Array, lie: str) -> History:
    """A history in which trials that still run have a value: the constant liar.

    What is claimed of all of them is the least, the mean or the best of the responses so far (Ginsbourger, Le Riche and
    Carraro 2010, who find the mean and the least to spread a batch further than the best), or nothing, then they are
    not in the history. Their configurations, f32[C, D], lie in slots bool[C] that are empty in the history; the lie is
    one of `LIES`, static.
    """
    if lie == "none":
        return history
    told, count = history.where, jnp.maximum(jnp.sum(history.where, dtype=history.response.dtype), 1.0)
    if lie == "mean":
        value = jnp.sum(jnp.where(told, history.response, 0.0)) / count
    elif lie == "min":
        value = jnp.min(jnp.where(told, history.response, jnp.inf))
    else:
        value = jnp.max(jnp.where(told, history.response, -jnp.inf))
    # Without any trial told, all that run are alike.
    value = jnp.where(jnp.any(told), value, 0.5)
    as_good = told & (history.response >= value)
    # Between the levels, or level with those that are equal.
    equal = jnp.any(told & (history.response == value))
    last = jnp.max(jnp.where(as_good, history.level, -1))
    level = 2 * last + jnp.where(equal, 0, 1)
    return History(
        x=jnp.where(pending[:, None], x, history.x),
        response=jnp.where(pending, value, history.response),
        level=jnp.where(pending, level, 2 * history.level).astype(history.level.dtype),
        where=told | pending,
    )
