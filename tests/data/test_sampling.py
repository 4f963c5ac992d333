"""Double sampling: what each list holds, and that every list is as likely as any other."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Task, build_table
from dre_jax.data.sampling import (
    draw_without_replacement,
    sample_lists,
    uniform_below,
)

SIZES = (30, 12, 5)
N_SUPPORT, N_QUERY, N_LISTS = 4, 10, 6000
SURE = 1e-4  # chance of a false alarm, with fixed keys: once passed, always passed


def table_of(sizes):
    rng = np.random.default_rng(0)
    tasks = [Task(str(i), np.zeros((n, 2), np.float32), rng.random(n)) for i, n in enumerate(sizes)]
    return build_table({task.name: task for task in tasks})


@partial(jax.jit, static_argnames=("shape", "n_support", "n_query"))
def sample(table, key, shape, *, n_support, n_query):
    bits = jax.random.bits(key, (*shape, 1 + n_support + n_query), jnp.uint32)
    return sample_lists(table, bits, n_support=n_support)


@cache
def drawn():
    """Lists of three uneven tasks, and the task of each."""
    key = jax.random.key(0)
    lists = sample(table_of(SIZES), key, (N_LISTS // 2, 2), n_support=N_SUPPORT, n_query=N_QUERY)
    lists = jax.tree.map(lambda a: np.asarray(a).reshape(N_LISTS, -1), lists)
    starts = np.cumsum(SIZES) - SIZES
    return lists, np.searchsorted(starts, lists.support[:, 0], side="right") - 1


def of_task(task):
    """Support and query of a task's lists, as row numbers within the task and without empty slots."""
    lists, tasks = drawn()
    start = sum(SIZES[:task])
    support = lists.support[tasks == task][:, lists.support_where[tasks == task][0]] - start
    return support, lists.query[tasks == task][:, lists.query_where[tasks == task][0]] - start


@pytest.mark.parametrize(("task", "n_support", "n_query"), [(0, 4, 10), (1, 2, 10), (2, 1, 4)])
def test_a_fifth_is_support_and_short_tasks_are_masked(task, n_support, n_query):
    lists, tasks = drawn()
    rows = tasks == task
    # Filled slots stand in front.
    np.testing.assert_array_equal(lists.support_where[rows], np.tile(np.arange(N_SUPPORT) < n_support, (rows.sum(), 1)))
    np.testing.assert_array_equal(lists.query_where[rows], np.tile(np.arange(N_QUERY) < n_query, (rows.sum(), 1)))
    start = sum(SIZES[:task])
    assert (lists.support[rows][:, n_support:] == start).all()
    assert (lists.query[rows][:, n_query:] == start).all()


@pytest.mark.parametrize("task", range(3))
def test_rows_are_distinct_disjoint_and_in_the_order_of_relevance(task):
    support, query = of_task(task)
    everything = np.concatenate([support, query], axis=1)
    assert everything.min() >= 0
    assert everything.max() < SIZES[task]
    assert (np.diff(np.sort(everything, axis=1), axis=1) > 0).all()
    # The table is sorted by response, so the order of relevance is that of the row numbers.
    assert all((np.diff(rows, axis=1) > 0).all() for rows in (support, query))


def chance_if_uniform(rows, numbers):
    """Of counts as uneven, if each list held a uniform subset of the numbers.

    The numbers of a list exclude each other: its counts are more even than those of independent draws, by a factor.
    """
    counts, share = np.array([np.sum(rows == number) for number in numbers]), rows.shape[1] / len(numbers)
    spread = len(rows) * share * (1.0 - share) * len(numbers) / (len(numbers) - 1.0)
    return stats.chi2.sf(np.sum((counts - len(rows) * share) ** 2) / spread, len(numbers) - 1)


def test_tasks_and_rows_are_equally_likely():
    assert stats.chisquare(np.bincount(drawn()[1], minlength=3)).pvalue > SURE
    for task, size in enumerate(SIZES):
        for rows in of_task(task):
            assert chance_if_uniform(rows, range(size)) > SURE


def test_lists_of_one_call_and_of_other_keys_differ():
    # Of the large task's 30! / (4! 10! 16!) lists.
    assert len(np.unique(np.concatenate(of_task(0), axis=1), axis=0)) == np.sum(drawn()[1] == 0)
    table = table_of((300,))
    one, again, other = (sample(table, jax.random.key(seed), (2,), n_support=2, n_query=5) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.query, again.query)
    assert (np.asarray(one.query) != other.query).any()


def test_below_is_the_high_half_of_the_product():
    rng = np.random.default_rng(1)
    bits = np.append(rng.integers(0, 2**32, 400), [0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 1]).astype(np.uint32)
    bounds = np.append(rng.integers(1, 2**31, 40), [-5, 0, 1, 2, 3, 2**16 - 1, 2**16, 2**16 + 1, 2**31 - 1])
    got = jax.jit(uniform_below)(jnp.asarray(bits)[:, None], jnp.asarray(bounds.astype(np.int32))[None, :])
    expected = [[(int(b) * max(int(n), 1)) >> 32 for n in bounds] for b in bits]
    assert got.dtype == jnp.int32
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (4, 4), (3, 0), (5, 1), (6, 5)])
def test_every_subset_is_equally_likely(n, k):
    bits = jax.random.bits(jax.random.key(n * 10 + k), (4000, 5), jnp.uint32)
    rows = np.asarray(many_draws(bits, jnp.int32(n), jnp.int32(k)))
    assert (rows[:, k:] == 2**31 - 1).all()
    subsets = list(itertools.combinations(range(n), k))
    counts = [np.sum((rows[:, :k] == subset).all(axis=1)) for subset in subsets]
    assert sum(counts) == len(rows)
    assert len(subsets) == 1 or stats.chisquare(counts).pvalue > SURE


many_draws = jax.jit(jax.vmap(draw_without_replacement, in_axes=(0, None, None)))


def test_the_cost_does_not_depend_on_the_rows():
    tables, sizes = [table_of((n,)) for n in (101, 100_003)], {"shape": (3,), "n_support": 4, "n_query": 7}
    small, large = (sample.lower(table, jax.random.key(0), **sizes).cost_analysis() for table in tables)
    assert small["flops"] == large["flops"] > 100
    assert small["bytes accessed"] == large["bytes accessed"] < tables[1].x.nbytes
