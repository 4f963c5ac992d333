import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import rankdata

from dre_jax.search.ranks import _rank_by_sorting, mean_tie_ranks

ranks_of = jax.jit(mean_tie_ranks)


def tied_scores(shape):
    return np.round(np.random.default_rng(0).normal(size=shape) * 2).astype(np.float32) / 2


@pytest.mark.parametrize("shape", [(1,), (12,), (5, 30), (2, 3, 8), (2, 1001)])
def test_equals_scipy(shape):
    scores = tied_scores(shape)
    ranks = ranks_of(jnp.asarray(scores), jnp.ones(shape, bool))
    assert ranks.dtype == jnp.float32
    np.testing.assert_array_equal(ranks, rankdata(-scores, method="average", axis=-1))


@pytest.mark.parametrize("n", [1, 2, 257])
def test_ranks_without_a_gather_equal_scipy(n):
    """What a TPU computes."""
    keys = np.random.default_rng(n).integers(-20, 20, (3, n)).astype(np.int32)
    np.testing.assert_array_equal(jax.vmap(_rank_by_sorting)(keys), 2 * rankdata(keys, method="average", axis=-1))


def test_empty_slots_rank_last():
    scores = tied_scores((5, 30))
    where = np.random.default_rng(1).random(scores.shape) < 0.6
    for garbage in (-1e30, 0.0, 1e30, np.nan):
        ranks = np.asarray(ranks_of(jnp.asarray(np.where(where, scores, np.float32(garbage))), jnp.asarray(where)))
        for row, values, items in zip(ranks, scores, where, strict=True):
            np.testing.assert_array_equal(row[items], rankdata(-values[items], method="average"))


def test_ranks_of_all_floats_with_nan_last():
    tiny, huge = np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).max
    scores = np.array([[0.0, -0.0, 1.0, -1.0, huge, -huge, np.inf, -np.inf, tiny, -1e-30, 1e-30, 2.5]], np.float32)
    ranks = np.asarray(ranks_of(jnp.asarray(scores), jnp.ones(scores.shape, bool)))
    flushed = np.where(np.abs(scores) <= tiny, 0.0, scores)  # processors may take a subnormal for zero
    possible = [rankdata(-s, method="average", axis=-1) for s in (scores, flushed)]
    assert any((ranks == expected).all() for expected in possible)
    scores = np.array([3.0, np.nan, -np.inf, -np.nan, 5.0], np.float32)
    assert ranks_of(jnp.asarray(scores), jnp.ones(5, bool)).tolist() == [2.0, 4.5, 3.0, 4.5, 1.0]
