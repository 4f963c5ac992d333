"""The warm start against every set that there is."""

from itertools import combinations

import jax
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.errors import ConfigError, DataError
from dre_jax.surrogates.warm_start import greedy, least_regret, regrets, set_loss, start_rows, warm_start


def best_by_trying_all(regret, n):
    return min(
        sum(min(regret[t, row] for row in rows) for t in range(len(regret)))
        for rows in combinations(range(regret.shape[1]), n)
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 3])
def test_the_least_of_all_sets(seed, n):
    regret = np.random.default_rng(seed).random((9, 12))
    rows = least_regret(regret, n, jax.random.key(seed), steps=1500)
    assert len(set(rows.tolist())) == n
    assert set_loss(regret, rows) == pytest.approx(best_by_trying_all(regret, n))


def test_better_than_greedy_where_greedy_falls_short():
    # The best single row does a little for all tasks; the best pair has a row for each half.
    regret = np.array([[0.4, 0.0, 1.0], [0.4, 0.0, 1.0], [0.4, 1.0, 0.0], [0.4, 1.0, 0.0]])
    assert set_loss(regret, greedy(regret, 2)) == pytest.approx(0.8)
    assert set(least_regret(regret, 2, jax.random.key(0), steps=50).tolist()) == {1, 2}


def test_regrets_are_those_of_the_tables():
    random = np.random.default_rng(0)
    x = random.random((20, 3)).astype(np.float32)
    tasks = {name: Task(name, x[order], random.random(20)) for name in "ab" for order in [random.permutation(20)]}
    found = regrets(tasks, x)
    for t, task in enumerate(tasks.values()):
        for i in range(20):
            y = task.y[next(j for j in range(20) if (task.X[j] == x[i]).all())]
            assert found[t, i] == pytest.approx((task.y.max() - y) / (task.y.max() - task.y.min()))
    moved = regrets(tasks, x + np.float32(1e-4))  # of the nearest row
    np.testing.assert_array_equal(moved, found)


def test_equal_rows_fall_by_chance():
    picked = {int(least_regret(np.full((3, 8), 0.5), 1, jax.random.key(seed), steps=5)[0]) for seed in range(60)}
    assert picked == set(range(8))


def test_of_a_search_space():
    random = np.random.default_rng(4)
    x = random.random((30, 2)).astype(np.float32)
    good = int(np.argmin(((x - 0.5) ** 2).sum(axis=1)))
    tasks = {f"t{i}": Task(f"t{i}", x, -(((x - x[good]) ** 2) @ random.random(2)) * 7 + 3) for i in range(4)}
    space = SearchSpace("toy", train=tasks)
    assert good in warm_start(space, x, 3, jax.random.key(0), steps=10)
    rows = warm_start(space, x, 30, jax.random.key(0), steps=10)
    assert sorted(rows.tolist()) == list(range(30))
    for n in (0, 31):
        with pytest.raises(ConfigError, match=f"got n={n} of N=30"):
            warm_start(space, x, n, jax.random.key(0))
    with pytest.raises(DataError, match="needs training tasks"):
        warm_start(SearchSpace("none"), x, 3, jax.random.key(0))


def test_first_configurations_of_tasks_large_and_small():
    """Each task has an optimum of its own, and one row that is nearly as good on all of them."""
    random = np.random.default_rng(1)
    x = random.random((3000, 2)).astype(np.float32)
    tasks = {}
    for i, n in enumerate((3000, 3000, 40)):
        y = random.uniform(0.0, 0.5, n)
        y[7], y[20 + i] = 0.9, 1.0
        tasks[str(i)] = Task(str(i), x[:n], y)
    assert start_rows(tasks, 1, seed=0).tolist() == [x[7].tolist()]
    found = start_rows(tasks, 4, seed=0)
    assert {tuple(row) for row in found.tolist()} == {tuple(x[row].tolist()) for row in (7, 20, 21, 22)}
    np.testing.assert_array_equal(start_rows(tasks, 4, seed=0), found)
