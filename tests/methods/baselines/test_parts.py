"""Scales, kernels, orders and densities against NumPy loops and scikit-learn."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from dre_jax.gp.kernels import matern52, squared_distances, squared_distances_by_products, squared_exponential
from dre_jax.gp.response_scale import best_response, standardise
from dre_jax.methods.baselines.metis import bandwidths, log_parzen
from dre_jax.methods.baselines.sources import misranked, misranked_left_out

# One program each, where it would be one for every operation.
scaled, best = jax.jit(standardise), jax.jit(best_response)
wrong, wrong_left_out = jax.jit(misranked), jax.jit(misranked_left_out)
density, widths = jax.jit(log_parzen), jax.jit(bandwidths)


def test_standardise_counts_filled_slots_only():
    y, where = np.array([3.0, 99.0, 1.0, 8.0], np.float32), np.array([True, False, True, True])
    found = scaled(y, where)
    filled = np.array([3.0, 1.0, 8.0])
    np.testing.assert_allclose(np.asarray(found.y)[where], stats.zscore(filled), rtol=1e-6)
    assert float(found.y[1]) == 0.0
    assert float(found.deviation) == pytest.approx(filled.std())
    assert float(best(y, where)) == 8.0


@pytest.mark.parametrize("value", [0.0, 0.1, -7e5])
def test_equal_responses_become_zero(value):
    found = scaled(np.full(7, value, np.float32), np.ones(7, bool))
    assert (np.asarray(found.y) == 0.0).all()
    assert float(found.deviation) == 1.0


@pytest.mark.parametrize(("kernel", "name"), [(matern52, "Matern"), (squared_exponential, "RBF")])
def test_kernels_are_scikit_learns_and_have_a_slope_at_zero(kernel, name):
    from sklearn.gaussian_process import kernels

    theirs = kernels.Matern(nu=2.5) if name == "Matern" else kernels.RBF()
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    for distances in (squared_distances, squared_distances_by_products):
        found = jax.jit(lambda a, b, of=distances: kernel(of(a, b)))(a.astype(np.float32), b.astype(np.float32))
        np.testing.assert_allclose(found, theirs(a, b), atol=1e-6)
    slope = jax.jit(jax.grad(lambda a: kernel(squared_distances(a, a)).sum()))(np.ones((3, 2), np.float32))
    assert np.isfinite(slope).all()


def slow_misranked(predicted, level, where):
    rows = [i for i in range(len(level)) if where[i]]
    pairs = [(i, j) for i, j in itertools.permutations(rows, 2) if level[i] < level[j]]
    wrong = sum(1.0 if predicted[i] < predicted[j] else 0.5 if predicted[i] == predicted[j] else 0.0 for i, j in pairs)
    return wrong / len(pairs) if pairs else 0.0


def test_misranked_pairs_one_by_one():
    rng = np.random.default_rng(1)
    predicted = rng.integers(0, 4, size=(6, 9)).astype(np.float32)
    level, where = rng.integers(0, 5, size=9), rng.random(9) < 0.7
    found = wrong(predicted, level.astype(np.int32), where)
    np.testing.assert_allclose(found, [slow_misranked(row, level, where) for row in predicted], rtol=1e-6)
    assert float(wrong(predicted[0] * 0, np.zeros(9, np.int32), np.ones(9, bool))) == 0.0


def test_misranked_pairs_of_models_without_one_of_them():
    rng = np.random.default_rng(1)
    predicted = rng.integers(0, 4, size=(3, 7, 7)).astype(np.float32)
    level, where = rng.integers(0, 4, size=7), rng.random(7) < 0.8
    found = wrong_left_out(predicted, level.astype(np.int32), where)
    for share, of in zip(np.asarray(found), predicted, strict=True):
        turned, pairs = 0.0, 0
        for j, k in itertools.permutations(np.flatnonzero(where), 2):
            if level[j] != level[k]:
                pairs += 1
                # The paper's xor, with a half for equal predictions.
                turned += 0.5 if of[j, j] == of[j, k] else float((of[j, j] < of[j, k]) != (level[j] > level[k]))
        assert float(share) == pytest.approx(turned / pairs)


def test_what_is_no_number_ranks_nothing_right():
    level, where, nothing = np.arange(3, dtype=np.int32), np.ones(3, bool), np.full((3, 3), np.nan, np.float32)
    assert float(wrong(nothing[0], level, where)) == 1.0
    assert float(wrong_left_out(nothing, level, where)) == 1.0


def test_parzen_is_scikit_learns_with_a_uniform_component():
    from sklearn.neighbors import KernelDensity

    rng = np.random.default_rng(2)
    x, new = rng.uniform(size=(7, 1)), rng.uniform(size=(5, 1))
    where = np.array([True] * 6 + [False])
    trials, candidates = x.astype(np.float32), new.astype(np.float32)
    width = float(np.asarray(widths(trials, where))[0])
    assert width == pytest.approx(x[:6].std() * 6 ** (-1 / 5), rel=1e-5)
    kernels = KernelDensity(bandwidth=width).fit(x[:6]).score_samples(new)
    expected = np.log((6 * np.exp(kernels) + 1.0) / 7)
    np.testing.assert_allclose(density(trials, where, candidates), expected, atol=1e-5)
    np.testing.assert_array_equal(density(trials, np.zeros(7, bool), candidates), 0.0)
