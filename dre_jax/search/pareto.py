"""What no other candidate beats in everything."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.model import mean_tie_ranks

MOST = 1024
"""Candidates that are compared with each other."""


def pareto_front(values: Array, where: Array) -> Array:
    """Which candidates no other equals or exceeds in every value while exceeding it in one.

    Of more than 1024 candidates those are compared whose ranks in all values have the least sum. A candidate that
    beats another has the lesser sum, so none that is beaten is ever taken for one of the front; members of the front
    whose sum is too large are left out.

    Args:
      values: f32[K, N], higher is better.
      where: bool[N], which candidates count.

    Returns:
      bool[N].

    Example:
      >>> pareto_front(jnp.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.5]]), jnp.ones(3, bool)).tolist()
      [True, True, False]
    """
    n = where.shape[0]
    counted = jnp.broadcast_to(where, values.shape)
    total = jnp.where(where, jnp.sum(mean_tie_ranks(values, counted), axis=0), jnp.inf)
    _, kept = jax.lax.top_k(-total, min(MOST, n))
    some, counts = values[:, kept], where[kept]
    no_worse = jnp.all(some[:, :, None] >= some[:, None, :], axis=0)
    better = jnp.any(some[:, :, None] > some[:, None, :], axis=0)
    beaten = jnp.any(no_worse & better & counts[:, None], axis=0)
    return jnp.zeros(n, bool).at[kept].set(counts & ~beaten)
