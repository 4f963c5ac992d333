"""Batches of runs against single runs: the same picks whatever runs beside them, and wherever."""

import json
import logging

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import ConfigError, DataError, Task
from dre_jax.data.tasks import sort_task
from dre_jax.runtime.devices import local
from dre_jax.search import ExecutionConfig, SearchTask, run, run_tasks
from dre_jax.search.batch import bucket, run_id, run_key, stack_tasks
from dre_jax.search.grid import GridConfig, GridRuns, grid, mesh_for, run_keys
from dre_jax.suggest import Suggester
from tests.known_methods import Valued
from tests.processes import run_python

N_TRIALS = 8
KEY = jax.random.key(7)
ROWS = {"wine-proline": 256, "wine-alcalinity": 250, "diabetes-glucose": 256, "digits-8v9-r47-c47": 250}
compiled = jax.jit(run, static_argnums=0, static_argnames="n_trials")


@pytest.fixture(scope="module")
def tasks(space, cut_task):
    """Four tasks of one program, of which two are padded."""
    return {name: cut_task(space.test[name], n) for name, n in ROWS.items()}


@pytest.fixture(scope="module")
def designs():
    rng = np.random.default_rng(0)
    return {name: {seed: rng.choice(n, 5, replace=False) for seed in ("test0", "test1")} for name, n in ROWS.items()}


def traces_of(method, tasks, designs, key=KEY, n_trials=N_TRIALS, **config):
    result = run_tasks(*method, tasks, designs, n_trials=n_trials, key=key, config=ExecutionConfig(**config))
    return {(dataset, seed): trace for dataset, seed, trace in result}


@pytest.fixture(scope="module")
def together(methods, tasks, designs):
    """All runs in one batch, by name of the method."""
    return {name: traces_of(methods[name], tasks, designs) for name in ("random", "dre")}


def running_best(task, rows):
    """Best response so far after each row, scaled by the task's table, in plain Python."""
    scaled = [(y - min(task.y)) / (max(task.y) - min(task.y)) for y in task.y.tolist()]
    return [max(scaled[row] for row in rows[: i + 1]) for i in range(len(rows))]


@pytest.mark.parametrize("name", ["random", "dre"])
def test_a_batch_is_its_single_runs(name, methods, tasks, designs, together, search_task):
    assert together[name].keys() == {(dataset, seed) for dataset in tasks for seed in ("test0", "test1")}
    for (dataset, seed), trace in together[name].items():
        task, design = tasks[dataset], designs[dataset][seed]
        order = sort_task(task).order
        start = jnp.asarray(np.argsort(order)[design], jnp.int32)
        # No padding, no neighbours.
        picks = compiled(*methods[name], search_task(task), start, run_key(KEY, dataset, seed), n_trials=N_TRIALS)
        evaluated = [*design, *order[[row for row in picks.tolist() if row >= 0]]]
        expected = running_best(task, evaluated)[4:]
        expected += [1.0] * (1 + N_TRIALS - len(expected))
        assert trace.dtype == np.float64
        np.testing.assert_allclose(trace, expected, rtol=1e-12)


def test_a_run_does_not_depend_on_its_batch(methods, tasks, designs, together):
    """Alone on one device, and in another order among longer designs and tasks of another size."""
    short = {f"{name} cut": Task(name, task.X[:20], task.y[:20]) for name, task in tasks.items()}
    others = {name: rows | {"long": np.arange(9)} for name, rows in designs.items()}
    others |= {name: {"test3": np.arange(5)} for name in short}
    for batch, starts, config in (
        ({"wine-alcalinity": tasks["wine-alcalinity"]}, designs, {"devices": 1}),
        (dict(reversed([*tasks.items(), *short.items()])), others, {}),
    ):
        traces, every = traces_of(methods["random"], batch, starts, **config), tasks | short
        assert traces.keys() == {(dataset, seed) for dataset in batch for seed in starts[dataset]}
        for (dataset, seed), trace in traces.items():
            assert trace[0] == pytest.approx(running_best(every[dataset], starts[dataset][seed])[-1])
            if (dataset, seed) in together["random"]:
                np.testing.assert_array_equal(trace, together["random"][dataset, seed])


def test_side_by_side_is_one_by_one(methods, tasks, designs):
    method = methods["dre-as-it-is"]
    one_by_one, side_by_side = (traces_of(method, tasks, designs, side_by_side=flag) for flag in (False, True))
    chex.assert_trees_all_equal(one_by_one, side_by_side)


def test_the_key_and_the_names_decide(methods, tasks, designs, together):
    assert run_id("123456789") == 0xCBF43926  # the check value of CRC-32
    other_key = traces_of(methods["random"], tasks, designs, key=jax.random.key(8))
    assert any((trace != together["random"][name]).any() for name, trace in other_key.items())
    renamed = traces_of(methods["random"], {"other": tasks["wine-proline"]}, {"other": designs["wine-proline"]})
    assert any((trace != together["random"]["wine-proline", seed]).any() for (_, seed), trace in renamed.items())


def test_keys_of_a_grid_are_those_of_its_runs():
    """Both kinds of keys, and an identifier beyond the range of an int32."""
    datasets, seeds = ("a", "123456789"), ("test0", "test1", "b")
    ids = np.array([[(run_id(dataset), run_id(seed)) for seed in seeds] for dataset in datasets], np.uint32)
    assert ids.max() > 2**31
    for impl in ("threefry2x32", "rbg"):
        keys = [jax.random.key(i, impl=impl) for i in range(2)]
        result = run_keys(np.stack([jax.random.key_data(key) for key in keys]), ids, jax.random.key_impl(keys[0]))
        expected = [[run_key(key, d, s) for s in seeds] for key, d in zip(keys, datasets, strict=True)]
        for row, expected_row in zip(result, expected, strict=True):
            for key, expected_key in zip(row, expected_row, strict=True):
                chex.assert_trees_all_equal(*map(jax.random.key_data, (key, expected_key)))


def test_padded_tables_of_several_tasks():
    tasks = [sort_task(Task(str(n), np.full((n, 2), n, np.float32), np.arange(float(n)))) for n in (3, 5)]
    tables = stack_tasks(tasks, 6)
    assert all(isinstance(leaf, np.ndarray) for leaf in tables)
    np.testing.assert_array_equal(tables.where, [[True] * 3 + [False] * 3, [True] * 5 + [False]])
    np.testing.assert_array_equal(tables.x[..., 0], [[3] * 3 + [0] * 3, [5] * 5 + [0]])
    np.testing.assert_array_equal(tables.response[0], [1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    last = np.iinfo(np.int32).max
    np.testing.assert_array_equal(tables.level, [[0, 1, 2, *[last] * 3], [0, 1, 2, 3, 4, last]])


PROGRAM = """
import json, sys
import jax, numpy as np
from dre_jax.data import bundled
from dre_jax.methods import DRE
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.model.ensemble import init
from dre_jax.search import ExecutionConfig, run_tasks
from dre_jax.methods.dre.training_config import FineTuneConfig

space = bundled.load("svm")
tasks = dict(list(space.test.items())[:2])
model = ModelConfig(members=2, hidden=(8, 8), phi=(8, 8), rho=(8, 4))
dre = DRE(model=model, fine_tuning=FineTuneConfig(epochs=5, learning_rate=0.01))
params = init(model, space.n_columns, jax.random.key(0))
assert len(jax.devices()) == 4
# Two tasks: shared out over two devices; over four together with their designs, which the devices do not divide.
for devices in map(int, sys.argv[1:]):
    config = ExecutionConfig(devices=devices)
    traces = run_tasks(dre, params, tasks, space.designs, n_trials=4, key=jax.random.key(3), config=config)
    print(json.dumps(sorted((d, s, t.tolist()) for d, s, t in traces)))
"""


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.parametrize("counts", [(1, 4), pytest.param((1, 2), marks=pytest.mark.thorough)])
def test_the_number_of_devices_does_not_matter(counts):
    first, other = map(json.loads, run_python(PROGRAM, *counts, JAX_NUM_CPU_DEVICES="4").stdout.splitlines())
    assert first == other
    assert len(first) == 10


def compilations(caplog, f):
    """How many programs are compiled while f runs."""
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
        f()
    return sum(record.getMessage().startswith("Compiling") for record in caplog.records)


def test_the_second_call_compiles_nothing(caplog, methods, tasks, designs):
    def call(names, seed, n_trials):
        some = {name: tasks[name] for name in names}
        return lambda: traces_of(methods["random"], some, designs, key=jax.random.key(seed), n_trials=n_trials)

    first = ["wine-proline", "wine-alcalinity"]
    assert compilations(caplog, call(first, 0, 5)) > 0
    assert compilations(caplog, call(first, 1, 5)) == 0
    # Other tasks of the same size.
    assert compilations(caplog, call(["diabetes-glucose", "wine-alcalinity"], 1, 5)) == 0


def test_buckets():
    sizes = np.arange(1, 5000)
    buckets = np.array([bucket(int(n)) for n in sizes])
    assert (buckets >= sizes).all()
    assert (buckets <= 1.25 * sizes).all()
    assert (np.diff(buckets) >= 0).all()
    assert len(set(buckets)) < 50


def test_a_task_without_a_design_and_a_name_in_place_of_a_method(methods, tasks):
    with pytest.raises(DataError, match=r"initial design, .*'wine-proline'"):
        next(run_tasks(*methods["random"], tasks, {}, n_trials=2, key=KEY))
    with pytest.raises(ConfigError, match=r"a method must be an object, such as .*, but got 'random'"):
        next(run_tasks("random", None, tasks, {}, n_trials=2, key=KEY))
    with pytest.raises(ConfigError, match="but got <class"):
        Suggester(type(methods["random"][0]))


@pytest.mark.parametrize("side_by_side", [True, False])
def test_the_runs_of_a_task_share_its_table(side_by_side):
    rows, columns, n_designs = 1000, 128, 16
    one_row = jnp.zeros((1, rows))
    table = SearchTask(jnp.zeros((1, rows, columns)), one_row, one_row.astype(jnp.int32), one_row == 0.0)
    config = GridConfig(2, mesh_for(local()[:1], 1, n_designs), side_by_side)
    designs, run_ids = np.zeros((1, n_designs, 5), np.int32), np.zeros((1, n_designs, 2), np.uint32)
    runs = GridRuns(table, designs, np.zeros((1, 2), np.uint32), run_ids)
    counts = np.array([[[1, n_designs]]], np.int32)
    along_the_first = Valued(lambda history, x: x @ history.x[0])  # reads the table and the history of each run
    compiled = grid.lower(along_the_first, None, runs, counts, config).compile()
    memory, one = compiled.memory_analysis(), rows * columns * 4
    assert one < memory.argument_size_in_bytes < 1.2 * one
    # Values and masks of every run, but no table of its own.
    assert memory.temp_size_in_bytes < 2 * one
