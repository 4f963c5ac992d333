"""Tests of significance against SciPy, textbook formulas, and groups found by trying all."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from dre_jax.errors import ConfigError
from dre_jax.report import Comparison, significance
from dre_jax.report.statistics import signed_rank

NAMES = "abcdefgh"


def comparison(regret, designs=1):
    """From f64[methods, runs], one trial; so many designs a task."""
    regret = np.asarray(regret, np.float64)[:, :, None]
    methods = tuple(NAMES[: len(regret)])
    runs = tuple(("s", f"task {i // designs}", f"test{i % designs}") for i in range(regret.shape[1]))
    none = dict.fromkeys(methods, 0)
    return Comparison(methods, runs, regret, none, 0, none)


def draw(n_methods=5, n_runs=60, seed=0, decimals=2):
    """Regret in steps of 0.01, so with ties, that grows from method to method."""
    rng = np.random.default_rng(seed)
    difficulty = rng.random(n_runs) * 0.5
    shift = np.linspace(0, 0.1, n_methods)[:, None]
    return np.round(np.clip(difficulty + shift + 0.1 * rng.standard_normal((n_methods, n_runs)), 0, 1), decimals)


def slow_signed_rank(differences):
    """Wilcoxon's test with Pratt's zeros: every pattern of signs of the differences, one by one."""
    size = [abs(d) for d in differences]
    rank = [sum(s < own for s in size) + (size.count(own) + 1) / 2 for own in size]
    moving = [(r, d > 0) for r, d in zip(rank, differences, strict=True) if d != 0]
    centre = sum(r for r, _ in moving) / 2
    result = abs(sum(r for r, positive in moving if positive) - centre)
    patterns = list(product((0, 1), repeat=len(moving)))
    as_far = sum(
        abs(sum(r * s for (r, _), s in zip(moving, signs, strict=True)) - centre) >= result for signs in patterns
    )
    return as_far / len(patterns)


@pytest.mark.parametrize("n", range(1, 11))
@pytest.mark.parametrize("most", [1, 3, 10**6])
@pytest.mark.parametrize("zeros", [0, 60])
def test_signed_rank_against_every_pattern_of_signs(n, most, zeros):
    differences = np.append(np.random.default_rng(n).integers(-most, most + 1, n), np.zeros(zeros, int))
    expected = slow_signed_rank(differences.tolist())
    assert signed_rank(differences / 1e8, np.zeros(n + zeros)) == pytest.approx(expected)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2])
def test_the_normal_approximation_goes_on_where_counting_ends(shift, monkeypatch):
    differences = np.round(np.random.default_rng(3).normal(shift, 1, 260), 1)
    normal = signed_rank(differences, np.zeros(260))
    monkeypatch.setattr("dre_jax.report.statistics._MOST_EXACT", 260)
    assert normal == pytest.approx(signed_rank(differences, np.zeros(260)), rel=0.1)
    assert normal == pytest.approx(stats.wilcoxon(np.round(10 * differences), zero_method="pratt").pvalue)


@pytest.mark.parametrize("decimals", [2, 6])
def test_friedman_is_scipys(decimals):
    regret = draw(decimals=decimals)
    result = significance(comparison(regret), 0, unit="runs")
    assert (result.friedman_statistic, result.friedman_p) == pytest.approx(stats.friedmanchisquare(*regret))
    np.testing.assert_allclose(result.average_rank, stats.rankdata(regret, axis=0).mean(axis=1))


def test_tasks_are_means_over_designs():
    regret = draw(n_runs=60)
    result = significance(comparison(regret, designs=5), 0)
    means = regret.reshape(5, 12, 5).mean(axis=2)
    by_hand = significance(comparison(means), 0, unit="runs")
    assert (result.unit, result.n, by_hand.n) == ("tasks", 12, 12)
    np.testing.assert_array_equal(result.wilcoxon_p, by_hand.wilcoxon_p)
    assert result.friedman_p == by_hand.friedman_p


@pytest.mark.parametrize("n_runs", [2, 60])
def test_methods_that_never_differ(n_runs):
    result = significance(comparison(np.full((3, n_runs), 0.5)), 0)
    np.testing.assert_array_equal(result.wilcoxon_p, np.ones((3, 3)))
    np.testing.assert_array_equal(result.average_rank, [2, 2, 2])
    assert (result.cliques, result.friedman_statistic, result.friedman_p) == ((("a", "b", "c"),), 0.0, 1.0)


@pytest.mark.parametrize(("n_methods", "n_runs", "designs"), [(2, 60, 1), (5, 1, 1), (1, 60, 1), (5, 5, 5)])
def test_too_few_for_friedman(n_methods, n_runs, designs):
    result = significance(comparison(draw(n_methods, n_runs), designs), 0)
    assert np.isnan([result.friedman_statistic, result.friedman_p]).all()
    assert result.wilcoxon_p.shape == (n_methods, n_methods)
    assert np.isfinite(result.wilcoxon_p).all()
    if result.n == 1:  # one task separates nothing
        np.testing.assert_array_equal(result.wilcoxon_p, 1.0)
    assert result.cliques or n_methods < 5


def slow_cliques(tests):
    """Every stretch of the rank order without a separated pair, and of those the ones that no other holds."""
    order = [tests.methods[i] for i in np.argsort(tests.average_rank, kind="stable")]
    at = {name: i for i, name in enumerate(tests.methods)}
    stretches = [
        order[i:j]
        for i, j in combinations(range(len(order) + 1), 2)
        if all(tests.wilcoxon_p[at[one], at[two]] > tests.alpha for one, two in combinations(order[i:j], 2))
    ]
    largest = [s for s in stretches if not any(set(s) < set(other) for other in stretches)]
    return tuple(tuple(stretch) for stretch in largest if len(stretch) > 1)


@pytest.mark.parametrize("seed", range(8))
def test_cliques(seed):
    result = significance(comparison(draw(n_methods=8, n_runs=40, seed=seed)), 0)
    assert result.cliques == slow_cliques(result)
    assert result.cliques  # there is something to find


def test_the_trial_of_the_tests():
    regret = np.stack([draw(seed=0), draw(seed=1)], axis=2)
    both = comparison(draw())._replace(regret=regret)
    alone = significance(comparison(regret[:, :, 1]), 0)
    np.testing.assert_array_equal(significance(both, 1).wilcoxon_p, alone.wilcoxon_p)
    with pytest.raises(ConfigError, match="tasks or runs, but got 'spaces'"):
        significance(both, 0, unit="spaces")
    for trial in (-1, 2):
        with pytest.raises(ConfigError, match=f"between 0 and 1, but got {trial}"):
            significance(both, trial)
