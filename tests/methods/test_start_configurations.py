"""Configurations to try first, against every set that there is."""

from itertools import combinations

import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.methods.start_configurations import greedy, regrets, start_rows


def left(regret, rows):
    """Regret that is left after a set, task by task."""
    return sum(min(regret[t, row] for row in rows) for t in range(len(regret)))


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_the_best_next_one_and_is_not_far_from_the_best_set(seed):
    regret = np.random.default_rng(seed).random((9, 12))
    rows = greedy(regret, 3).tolist()
    for n in (1, 2, 3):
        others = set(range(12)) - set(rows[: n - 1])
        assert left(regret, rows[:n]) == pytest.approx(min(left(regret, [*rows[: n - 1], row]) for row in others))
    least = min(left(regret, some) for some in combinations(range(12), 3))
    assert len(set(rows)) == 3
    assert least <= left(regret, rows) < 1.5 * least


def test_regrets_are_those_of_the_tables():
    random = np.random.default_rng(0)
    x = random.random((20, 3)).astype(np.float32)
    tasks = {name: Task(name, x[order], random.random(20)) for name in "ab" for order in [random.permutation(20)]}
    result = regrets(tasks, x)
    for t, task in enumerate(tasks.values()):
        for i in range(20):
            y = task.y[next(j for j in range(20) if (task.X[j] == x[i]).all())]
            assert result[t, i] == pytest.approx((task.y.max() - y) / (task.y.max() - task.y.min()))
    moved = regrets(tasks, x + np.float32(1e-4))  # of the nearest row
    np.testing.assert_array_equal(moved, result)


def test_start_rows_of_past_tasks():
    random = np.random.default_rng(4)
    x = random.random((30, 2)).astype(np.float32)
    good = x[np.argmin(((x - 0.5) ** 2).sum(axis=1))]
    tasks = {f"t{i}": Task(f"t{i}", x, -(((x - good) ** 2) @ random.random(2)) * 7 + 3) for i in range(4)}
    assert (start_rows(tasks, 1, seed=0) == good).all()
    rows = start_rows(tasks, 30, seed=0)  # as many as were among the best ten of some task
    assert 10 <= len(rows) == len(np.unique(rows, axis=0)) <= 30
    flat = {"t": Task("t", x[:8], np.ones(8))}
    assert len({tuple(start_rows(flat, 1, seed)[0]) for seed in range(60)}) == 8  # equally good ones fall by chance
