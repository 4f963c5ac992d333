"""Tests of significance against SciPy, scikit-posthocs, textbook formulas, and groups found by trying all."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dre_jax.errors import ConfigError
from dre_jax.report import Comparison, significance
from dre_jax.report.statistics import holm

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


@pytest.mark.parametrize("n_runs", [6, 30, 60])
def test_pairs_against_scikit_posthocs(n_runs):
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    regret = draw(n_runs=n_runs)
    found = significance(comparison(regret), 0, unit="runs")
    # Whole hundredths, for which differences are exact.
    p = posthocs.posthoc_wilcoxon(np.round(100 * regret), zero_method="zsplit", p_adjust="holm")
    np.testing.assert_allclose(found.wilcoxon_p, p.to_numpy(), rtol=1e-12)
    assert found.wilcoxon_p.max() == 1.0
    assert n_runs < 60 or found.wilcoxon_p.min() < 0.05


@pytest.mark.parametrize("n_runs", range(2, 16))
def test_few_observations_without_ties_are_exact(n_runs):
    one, two = np.random.default_rng(n_runs).random((2, n_runs)).round(8)
    found = significance(comparison([one, two]), 0, unit="runs").wilcoxon_p[0, 1]
    assert found == pytest.approx(stats.wilcoxon(np.round(1e8 * (one - two)), method="exact").pvalue)


@pytest.mark.parametrize("decimals", [2, 6])
def test_friedman_by_its_formula(decimals):
    regret = draw(decimals=decimals)
    found = significance(comparison(regret), 0, unit="runs")
    k, n = regret.shape
    ranks = np.array([stats.rankdata(column) for column in regret.T])
    spread = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    # Over the variance of a rank with n (k - 1) degrees of freedom, which takes ties into account (Conover 1999).
    statistic = n * spread / (((ranks - (k + 1) / 2) ** 2).sum() / (k - 1))
    assert found.friedman_statistic == pytest.approx(statistic)
    assert found.friedman_p == pytest.approx(stats.chi2.sf(statistic, k - 1))
    np.testing.assert_allclose(found.average_rank, ranks.mean(axis=0))


def test_tasks_are_means_over_designs():
    regret = draw(n_runs=60)
    found = significance(comparison(regret, designs=5), 0)
    means = regret.reshape(5, 12, 5).mean(axis=2)
    by_hand = significance(comparison(means), 0, unit="runs")
    assert (found.unit, found.n, by_hand.n) == ("tasks", 12, 12)
    np.testing.assert_array_equal(found.wilcoxon_p, by_hand.wilcoxon_p)
    assert found.friedman_p == by_hand.friedman_p


def test_less_than_eight_decimals_is_no_difference():
    regret = draw()
    noise = np.random.default_rng(1).uniform(-1e-10, 1e-10, regret.shape)
    one, two = (significance(comparison(np.abs(values)), 0, unit="runs") for values in (regret, regret + noise))
    np.testing.assert_array_equal(one.wilcoxon_p, two.wilcoxon_p)
    assert one.friedman_p == two.friedman_p


@pytest.mark.parametrize("n_runs", [1, 2, 13, 60])
def test_methods_that_never_differ(n_runs):
    found = significance(comparison(np.full((3, n_runs), 0.5)), 0)
    np.testing.assert_array_equal(found.wilcoxon_p, np.ones((3, 3)))
    np.testing.assert_array_equal(found.average_rank, [2, 2, 2])
    assert found.cliques == (("a", "b", "c"),)
    assert found.friedman_p == 1.0 or n_runs == 1


def test_equal_on_most_tasks():
    regret = np.full((3, 60), 0.5)
    regret[1, :2] = 0.4
    found = significance(comparison(regret), 0)
    assert found.wilcoxon_p[0, 2] == 1.0
    assert found.wilcoxon_p[0, 1] > 0.05
    regret[1, :25] = 0.4
    assert significance(comparison(regret), 0).wilcoxon_p[0, 1] < 1e-3


def test_too_few_for_friedman():
    for regret in (draw(n_methods=2), draw(n_runs=1), draw(n_methods=1)):
        found = significance(comparison(regret), 0)
        assert np.isnan([found.friedman_statistic, found.friedman_p]).all()
        assert found.wilcoxon_p.shape == (len(regret), len(regret))
        assert np.isfinite(found.wilcoxon_p).all()
    assert significance(comparison(draw(n_methods=1)), 0).cliques == ()


def test_one_task_separates_nothing():
    found = significance(comparison(draw(n_runs=5), designs=5), 0)
    assert found.n == 1
    np.testing.assert_array_equal(found.wilcoxon_p, np.ones((5, 5)))


def test_holm_by_hand():
    # 4 x 0.01, 3 x 0.012 < 0.04, 2 x 0.03, 0.5; in the order given.
    np.testing.assert_allclose(holm([0.03, 0.01, 0.5, 0.012]), [0.06, 0.04, 0.5, 0.04])
    np.testing.assert_array_equal(holm([0.9, 0.8]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def slow_cliques(found):
    """Every stretch of the rank order without a separated pair, and of those the ones that no other holds."""
    order = [found.methods[i] for i in np.argsort(found.average_rank, kind="stable")]
    at = {name: i for i, name in enumerate(found.methods)}
    stretches = [
        order[i:j]
        for i, j in combinations(range(len(order) + 1), 2)
        if all(found.wilcoxon_p[at[one], at[two]] > found.alpha for one, two in combinations(order[i:j], 2))
    ]
    largest = [s for s in stretches if not any(set(s) < set(other) for other in stretches)]
    return tuple(tuple(stretch) for stretch in largest if len(stretch) > 1)


@pytest.mark.parametrize("seed", range(8))
def test_cliques(seed):
    found = significance(comparison(draw(n_methods=8, n_runs=40, seed=seed)), 0)
    assert found.cliques == slow_cliques(found)
    assert found.cliques  # there is something to find


def test_the_trial_is_the_one_asked_for():
    regret = np.stack([draw(seed=0), draw(seed=1)], axis=2)
    both = comparison(draw())._replace(regret=regret)
    np.testing.assert_array_equal(
        significance(both, 1).wilcoxon_p, significance(comparison(regret[:, :, 1]), 0).wilcoxon_p
    )


def test_refusals():
    given = comparison(draw())
    with pytest.raises(ConfigError, match="tasks or runs, but got 'spaces'"):
        significance(given, 0, unit="spaces")
    for trial in (-1, 1):
        with pytest.raises(ConfigError, match=f"between 0 and 0, but got {trial}"):
            significance(given, trial)
