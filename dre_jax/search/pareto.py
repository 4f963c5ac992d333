"""Pareto fronts of several acquisition functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.runtime.jit import jit_eager_calls
from dre_jax.search.ranks import mean_tie_ranks

MOST = 1024
"""Candidates that are compared with each other."""


@jit_eager_calls()
def pareto_front(values: Array, where: Array, key: Array) -> Array:
    """Returns the mask of the candidates that no other one equals or exceeds in all K values and exceeds in one.

    Of more than 1024 candidates those are compared whose ranks in all values have the least sum. A candidate that
    beats another has the lesser sum, so none that is beaten is ever taken for one of the front; members of the front
    whose sum is too large are left out; of equal sums it is drawn by key which. f32[K, N] and bool[N] -> bool[N].

    Example:
      >>> values = jnp.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.5]])
      >>> pareto_front(values, jnp.ones(3, bool), jax.random.key(0)).tolist()
      [True, True, False]
    """
    n = where.shape[0]
    all_where = jnp.broadcast_to(where, values.shape)
    total = jnp.where(where, jnp.sum(mean_tie_ranks(values, all_where), axis=0), jnp.inf)
    # The first of equal sums would be the best row of a table that is sorted by response.
    coins = jax.random.bits(key, (n,), jnp.uint32)
    _, _, order = jax.lax.sort((total, coins, jnp.arange(n)), num_keys=2)
    largest = order[:MOST]
    some, counts = values[:, largest], where[largest]
    no_worse = jnp.all(some[:, :, None] >= some[:, None, :], axis=0)
    better = jnp.any(some[:, :, None] > some[:, None, :], axis=0)
    dominated = jnp.any(no_worse & better & counts[:, None], axis=0)
    return jnp.zeros(n, bool).at[largest].set(counts & ~dominated)
