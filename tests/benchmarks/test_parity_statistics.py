"""The paired comparison against slow loops and scipy."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.parity_statistics import paired, resampled_means


def make_runs(seed, shift=0.0, n_tasks=12, n_designs=4):
    """Two methods on the same runs, the first worse by so much; tasks differ in how hard they are."""
    rng, (first, second) = np.random.default_rng(seed), ({}, {})
    for task in range(n_tasks):
        hardness = rng.random() * 0.2
        for design in range(n_designs):
            one, other = rng.normal(size=2) * 0.01
            key = "s", f"d{task}", f"test{design}"
            first[key], second[key] = (np.array([0.5, 0.7 - hardness + n]) for n in (one - shift, other))
    return first, second


def test_numbers_against_slow_loops():
    first, second = make_runs(0, shift=0.004)
    second["s", "more", "test0"] = np.array([0.5, 0.6])  # a run that one of them lacks
    found = paired(first, second, 1, margin=0.01)
    differences = {key: second[key][1] - first[key][1] for key in sorted(first)}
    assert (found.runs, found.tasks, found.trainings, found.trial) == (48, 12, 4, 1)
    for difference in (found.difference, found.regret[0] - found.regret[1]):
        assert difference == pytest.approx(np.mean(list(differences.values())))
    means = {
        part: [
            np.mean([d for key, d in differences.items() if key[part] == name]) for name in {key[part] for key in first}
        ]
        for part in (1, 2)
    }
    samples = list(differences.values()), means[1], means[2]
    for p, sample in zip((found.p_runs, found.p_tasks, found.p_trainings), samples, strict=True):
        assert p == pytest.approx(stats.wilcoxon(sample, method="exact").pvalue)
    # Tasks of equal size: the mean over runs is the mean over tasks, and its spread theirs.
    theory = np.std(means[1]) / np.sqrt(12)
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * 1.96 * theory, rel=0.1)
    assert found.interval[0] < found.difference < found.interval[1]


def test_a_difference_is_found_and_none_is_not():
    apart, alike = paired(*make_runs(1, shift=0.03), 1, margin=0.01), paired(*make_runs(1), 1, margin=0.01)
    assert max(apart.p_runs, apart.p_tasks) < 0.01
    assert not apart.equivalent
    assert min(alike.p_runs, alike.p_tasks) > 0.05
    assert alike.equivalent
    assert not paired(*make_runs(1), 1, margin=alike.smallest_margin * 0.99).equivalent
    same = paired(make_runs(2)[0], make_runs(2)[0], 1, margin=0.001)
    assert (same.difference, same.p_runs, same.p_tasks, same.equal_runs) == (0.0, 1.0, 1.0, 48)


def test_the_interval_covers_no_difference_mostly():
    found = [paired(*make_runs(seed), 1, margin=0.01).interval for seed in range(150)]
    assert 0.85 < np.mean([least < 0 < most for least, most in found]) < 0.99


def test_tasks_are_drawn_with_all_their_runs():
    means = resampled_means(np.array([1.0, 1.0, 1.0, 0.0]), np.array(["a", "a", "a", "b"]))
    values, counts = np.unique(means, return_counts=True)
    np.testing.assert_allclose(values, [0.0, 0.75, 1.0])  # b b, a b, a a
    np.testing.assert_allclose(counts / counts.sum(), [0.25, 0.5, 0.25], atol=0.02)
