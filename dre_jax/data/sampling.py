"""Double sampling on the device: a task, then support and query rows without replacement.

Tables are sorted by response, so a list's row numbers in increasing order are its order of relevance. No response is
sorted here or later. The cost depends on the length of the list, not on the rows of the task.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax import native
from dre_jax.data.tasks import TaskTable


class TaskSpans(NamedTuple):
    """Rows of all or some of a table's tasks: the part of a `TaskTable` that drawing reads."""

    start: Array
    """i32[..., T]: first row of each task."""
    size: Array
    """i32[..., T]: rows of each task."""
    n_tasks: Array
    """i32[...]: number of filled slots, the first of the T slots."""


class ListRows(NamedTuple):
    """Row numbers of one list in a `TaskTable`: K support rows, Q query rows."""

    support: Array
    """i32[K], increasing; empty slots hold the task's first row."""
    support_where: Array
    """bool[K]"""
    query: Array
    """i32[Q], best response first; empty slots, at the end, hold the task's first row."""
    query_where: Array
    """bool[Q]"""


def support_size(n: Array, at_most: int) -> Array:
    """Returns how many of n rows feed the deep set: a fifth, from one to ``at_most`` (the paper, section 4.3)."""
    return jnp.clip(n // 5, 1, at_most)


def uniform_below(bits: Array, bound: Array) -> Array:
    """Random i32[...] in [0, bound) from u32[...] bits: the high half of the product (Lemire 2019, without rejection).

    Bounds below 1 count as 1. The error of a probability is at most bound / 2**32. `jax.random.randint` draws bits
    twice, and random bits take most of the time of sampling, to compile and to run.
    """
    range_ = jnp.maximum(bound, 1).astype(jnp.uint32)
    half = jnp.uint32(16)
    low_bits, high_bits = bits & jnp.uint32(0xFFFF), bits >> half
    low_range, high_range = range_ & jnp.uint32(0xFFFF), range_ >> half
    low = low_bits * low_range
    first = high_bits * low_range + (low >> half)
    second = low_bits * high_range + (first & jnp.uint32(0xFFFF))
    return (high_bits * high_range + (first >> half) + (second >> half)).astype(jnp.int32)


def draw_without_replacement(bits: Array, n: Array, k: Array, *, may_be_native: bool = True) -> Array:
    """k distinct numbers out of range(n), every subset equally likely (Floyd's algorithm).

    Args:
      bits: u32[length], random.
      n: i32 scalar.
      k: i32 scalar, at most n and at most length.
      may_be_native: whether the loop may be the one in C++, which takes seconds to build; both give the same numbers.

    Returns:
      i32[length] in increasing order; slots from k on hold 2**31 - 1.
    """
    slot = jnp.arange(bits.shape[0], dtype=jnp.int32)
    newest = n - k + slot  # the number that becomes available at each step
    draws = uniform_below(bits, newest + 1)
    if may_be_native and native.available():
        return lax.platform_dependent(draws, newest, k, cpu=native.draw_without_replacement, default=_choose)
    return _choose(draws, newest, k)


def _choose(draws: Array, newest: Array, k: Array) -> Array:
    """Floyd's loop: the drawn number, or the newest one if the drawn one was chosen before."""
    length = draws.shape[0]
    slot = jnp.arange(length, dtype=jnp.int32)

    def step(j: Array, sample: Array) -> Array:
        is_chosen = jnp.any(sample == draws[j])
        value = jnp.where(is_chosen, newest[j], draws[j])
        return jnp.where((slot == j) & (j < k), value, sample)

    nothing = jnp.iinfo(jnp.int32).max
    return jnp.sort(lax.fori_loop(0, length, step, jnp.full(length, nothing, jnp.int32)))


def skip(index: Array, support: Array) -> Array:
    """Returns the i-th numbers outside of a sorted support, for i in ``index``; i32[Q] and i32[K] -> i32[Q]."""
    before = support - jnp.arange(support.shape[-1], dtype=jnp.int32)  # count of the numbers outside before each
    return index + jnp.sum(before[None, :] <= index[:, None], axis=-1, dtype=jnp.int32)


def sample_lists(
    table: TaskTable | TaskSpans,
    bits: Array,
    most: Array | None = None,
    *,
    n_support: int,
    may_be_native: bool = True,
) -> ListRows:
    """For each list a task uniformly, then K support and Q query rows of it, distinct and disjoint.

    A task with fewer than K + Q rows gives shorter, masked lists: a fifth of it feeds the deep set. Bits are random,
    u32[..., 1 + K + Q], and ``most`` i32[...] are maximum numbers of query rows, by default Q. For ``may_be_native``
    see `draw_without_replacement`.
    """
    if bits.ndim > 1:
        return jax.vmap(partial(sample_lists, table, n_support=n_support, may_be_native=may_be_native))(bits, most)
    draw = partial(draw_without_replacement, may_be_native=may_be_native)
    task = uniform_below(bits[0], table.n_tasks)
    start, size = table.start[task], table.size[task]
    k, n_query = jnp.minimum(support_size(size, n_support), size), bits.shape[0] - 1 - n_support
    q = jnp.minimum(size - k, n_query if most is None else most)
    support = draw(bits[1 : 1 + n_support], size, k) if n_support else jnp.zeros(0, jnp.int32)
    query = draw(bits[1 + n_support :], size - k, q)
    support_where = jnp.arange(n_support) < k
    query_where = jnp.arange(n_query) < q
    query = skip(jnp.where(query_where, query, 0), support)
    return ListRows(
        start + jnp.where(support_where, support, 0),
        support_where,
        start + jnp.where(query_where, query, 0),
        query_where,
    )
