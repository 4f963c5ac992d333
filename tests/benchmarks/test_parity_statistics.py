"""The paired comparison against slow loops and scipy."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.parity_statistics import paired, resampled_means


def make_runs(rng, shift=0.0, n_tasks=12, n_designs=4):
    """Two methods on the same runs, the first worse by so much; tasks differ in how hard they are."""
    first, second = {}, {}
    for task in range(n_tasks):
        hardness = rng.random() * 0.2
        for design in range(n_designs):
            noise = rng.normal(size=2) * 0.01
            key = "s", f"d{task}", f"test{design}"
            first[key], second[key] = (np.array([0.5, 0.7 - hardness + n]) for n in (noise[0] - shift, noise[1]))
    return first, second


def test_numbers_against_slow_loops():
    first, second = make_runs(np.random.default_rng(0), shift=0.004)
    second["s", "more", "test0"] = np.array([0.5, 0.6])  # a run that one of them lacks
    found = paired(first, second, 1, margin=0.01)
    differences = np.array([second[key][1] - first[key][1] for key in sorted(first)])
    assert (found.runs, found.tasks, found.trial) == (48, 12, 1)
    assert found.difference == pytest.approx(differences.mean())
    assert found.regret[0] - found.regret[1] == pytest.approx(differences.mean())
    assert found.p_runs == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)
    by_task = {}
    for key in first:
        by_task.setdefault(key[1], []).append(second[key][1] - first[key][1])
    means = [np.mean(each) for each in by_task.values()]
    assert found.p_tasks == pytest.approx(stats.wilcoxon(means, method="exact").pvalue)
    by_design = [np.mean([second[key][1] - first[key][1] for key in first if key[2] == f"test{i}"]) for i in range(4)]
    assert found.trainings == 4
    assert found.p_trainings == pytest.approx(stats.wilcoxon(by_design, method="exact").pvalue)
    # Tasks of equal size: the mean over runs is the mean over tasks, and its spread theirs.
    theory = np.std(means) / np.sqrt(12)
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * 1.96 * theory, rel=0.1)
    assert found.interval[0] < found.difference < found.interval[1]


def test_a_difference_is_found_and_none_is_not():
    apart = paired(*make_runs(np.random.default_rng(1), shift=0.03), 1, margin=0.01)
    assert apart.difference == pytest.approx(0.03, abs=0.005)
    assert max(apart.p_runs, apart.p_tasks) < 0.01
    assert not apart.equivalent
    alike = paired(*make_runs(np.random.default_rng(1)), 1, margin=0.01)
    assert min(alike.p_runs, alike.p_tasks) > 0.05
    assert alike.equivalent
    assert alike.interval[0] < 0 < alike.interval[1]
    assert not paired(*make_runs(np.random.default_rng(1)), 1, margin=alike.smallest_margin * 0.99).equivalent


def test_the_tests_are_valid_under_no_difference():
    """A p below 0.1 in about a tenth of the repetitions."""
    found = [paired(*make_runs(np.random.default_rng(seed)), 1, margin=0.01) for seed in range(150)]
    for name in ("p_runs", "p_tasks"):
        share = np.mean([getattr(one, name) < 0.1 for one in found])
        assert 0.03 < share < 0.19, name
    covered = np.mean([one.interval[0] < 0 < one.interval[1] for one in found])
    assert 0.85 < covered < 0.99


def test_nothing_differs():
    first, _ = make_runs(np.random.default_rng(2))
    found = paired(first, first, 1, margin=0.001)
    assert (found.difference, found.p_runs, found.p_tasks, found.equal_runs) == (0.0, 1.0, 1.0, 48)
    assert found.equivalent


def test_tasks_are_drawn_with_all_their_runs():
    differences, tasks = np.array([1.0, 1.0, 1.0, 0.0]), np.array(["a", "a", "a", "b"])
    means = resampled_means(differences, tasks)
    values, counts = np.unique(means, return_counts=True)
    np.testing.assert_allclose(values, [0.0, 0.75, 1.0])  # b b, a b, a a
    np.testing.assert_allclose(counts / counts.sum(), [0.25, 0.5, 0.25], atol=0.02)
