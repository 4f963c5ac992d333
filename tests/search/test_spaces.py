"""Runs of several search spaces as one program against each space alone."""

import chex
import jax
import numpy as np
import pytest

from dre_jax.data import bundled
from dre_jax.methods import DRE, RandomSearch
from dre_jax.methods.dre import FineTuneConfig, init
from dre_jax.search import ExecutionConfig, SpaceRuns, batch, run_spaces, run_tasks
from dre_jax.search.method import as_padding

N_TRIALS = 4
SIDE_BY_SIDE = ExecutionConfig(side_by_side=True, devices=1)
SIZES = {"svm": (60, 64), "random-forest": (61,)}


@pytest.fixture(scope="module")
def spaces(methods, cut_task):
    """Two search spaces of different columns, with two tasks and one task, of about a size."""
    model, result = methods["dre"][0].model, {}
    for name, sizes in SIZES.items():
        some = bundled.load(name).test.items()
        tasks = {dataset: cut_task(task, n) for (dataset, task), n in zip(some, sizes, strict=False)}
        designs = {dataset: {"test0": np.arange(5) + 7, "test1": np.arange(5) * 9} for dataset in tasks}
        n_columns = next(iter(tasks.values())).n_columns
        params = init(model, n_columns, jax.random.key(n_columns))
        result[name] = SpaceRuns(params, tasks, designs, jax.random.key(sum(sizes)))
    assert len({next(iter(runs.tasks.values())).n_columns for runs in result.values()}) == 2
    return result


def alone(method, spaces, config):
    return {
        (name, *key): trace
        for name, (params, tasks, designs, key) in spaces.items()
        for *key, trace in run_tasks(method, params, tasks, designs, n_trials=N_TRIALS, key=key, config=config)
    }


def together(method, spaces, config):
    return {tuple(names): t for *names, t in run_spaces(method, spaces, n_trials=N_TRIALS, config=config)}


def grids(monkeypatch):
    """Notes how many tasks are run as one program, and its configuration."""
    calls, run_grid = [], batch.run_grid

    def note(method, params, runs, config, capacity):
        calls.append((len(runs.designs), config.side_by_side, config.single_loop, config.params_by_task))
        return run_grid(method, params, runs, config, capacity)

    monkeypatch.setattr(batch, "run_grid", note)
    return calls


@pytest.mark.parametrize("epochs", [0, pytest.param(3, marks=pytest.mark.thorough)])
def test_search_spaces_together_are_each_alone(monkeypatch, methods, spaces, epochs):
    method = DRE(model=methods["dre"][0].model, fine_tuning=FineTuneConfig(epochs=epochs))
    expected, calls = alone(method, spaces, SIDE_BY_SIDE), grids(monkeypatch)
    result = together(method, spaces, SIDE_BY_SIDE)
    assert [n for n, *_ in calls] == [3]
    assert len(result) == 6
    chex.assert_trees_all_equal(result, expected)


def test_spaces_with_other_parameters_have_another_program(monkeypatch, methods, spaces):
    method = DRE(model=methods["dre"][0].model, fine_tuning=FineTuneConfig(epochs=0))
    svm = spaces["svm"]
    twice = svm._replace(params=jax.tree.map(lambda a: np.concatenate([a, a]), svm.params))  # twice as many members
    both = {**spaces, "svm": twice}
    expected, grid_sizes = alone(method, both, SIDE_BY_SIDE), grids(monkeypatch)
    chex.assert_trees_all_equal(together(method, both, SIDE_BY_SIDE), expected)
    assert [n for n, *_ in grid_sizes] == [2, 1]


def test_methods_that_cannot_pad_columns_go_space_by_space(monkeypatch, spaces):
    without = {n: runs._replace(params=None) for n, runs in spaces.items()}
    expected, calls = alone(RandomSearch(), without, SIDE_BY_SIDE), grids(monkeypatch)
    chex.assert_trees_all_equal(together(RandomSearch(), without, SIDE_BY_SIDE), expected)
    assert [n for n, *_ in calls] == [2, 1]
    # Random weights are drawn by the number of columns.
    assert as_padding(DRE(transfer=False)) is None
    assert as_padding(DRE()) == DRE()


def test_calls_are_no_larger_than_memory_allows(monkeypatch, spaces):
    calls = grids(monkeypatch)
    method, without = RandomSearch(), {n: runs._replace(params=None) for n, runs in spaces.items()}
    one = {"svm": without["svm"]._replace(tasks=dict.fromkeys("abcde", next(iter(without["svm"].tasks.values()))))}
    designs = next(iter(one["svm"].designs.values()))
    one["svm"] = one["svm"]._replace(designs=dict.fromkeys("abcde", designs))
    monkeypatch.setattr(batch, "_ROWS_AT_ONCE", 4 * 2 * 60)
    config = ExecutionConfig(side_by_side=True, devices=1)
    assert len(together(method, one, config)) == 10
    # Five tasks of which four fit: three and two.
    assert [n for n, *_ in calls] == [3, 2]
