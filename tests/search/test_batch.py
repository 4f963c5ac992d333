"""Batches of runs against single runs: the same picks whatever runs beside them, and wherever."""

import json
import logging
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data.tasks import sort_task
from dre_jax.errors import DataError
from dre_jax.search import BatchConfig, run, run_tasks
from dre_jax.search.batch import bucket, incumbents, run_id, run_key

N_TRIALS = 8
KEY = jax.random.key(7)
ROWS = {"wine-proline": 256, "wine-alcalinity": 250, "diabetes-glucose": 256, "digits-8v9-r47-c47": 230}
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
    found = run_tasks(*method, tasks, designs, n_trials=n_trials, key=key, config=BatchConfig(**config))
    return {(dataset, seed): trace for dataset, seed, trace in found}


@pytest.fixture(scope="module")
def together(methods, tasks, designs):
    """All runs in one batch, by name of the method."""
    return {name: traces_of(methods[name], tasks, designs) for name in ("random", "dre")}


def assert_equal_traces(some, others):
    assert some.keys() == others.keys()
    for run_name, trace in some.items():
        np.testing.assert_array_equal(trace, others[run_name], err_msg=str(run_name))


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


@pytest.mark.parametrize("name", ["random", pytest.param("dre", marks=pytest.mark.thorough)])
def test_other_tasks_and_their_order_do_not_matter(name, methods, tasks, designs, together):
    backwards = dict(reversed(tasks.items()))
    assert_equal_traces(traces_of(methods[name], backwards, designs), together[name])
    for dataset in ("wine-proline", "wine-alcalinity"):
        alone = traces_of(methods[name], {dataset: tasks[dataset]}, designs)
        assert_equal_traces(alone, {key: trace for key, trace in together[name].items() if key[0] == dataset})


@pytest.mark.parametrize("at_once", [3, 9])
def test_tasks_at_once_do_not_matter(at_once, methods, tasks, designs, together):
    assert_equal_traces(traces_of(methods["random"], tasks, designs, tasks_at_once=at_once), together["random"])


def test_tasks_of_another_size_do_not_matter(methods, space, cut_task, tasks, designs, together):
    sizes = {"wine-by-minerals": 130, "wine-0v1-by-hue": 20}
    more = tasks | {name: cut_task(space.test[name], n) for name, n in sizes.items()}
    more_designs = designs | {name: {"test3": np.arange(5)} for name in sizes}
    traces = traces_of(methods["random"], more, more_designs)
    for name, n in sizes.items():
        best = running_best(more[name], range(5))[-1]
        trace = traces.pop((name, "test3"))
        assert trace[0] == pytest.approx(best)
        assert n > 20 or trace[-1] > best
    assert_equal_traces(traces, together["random"])


def test_the_other_seeds_do_not_matter(methods, tasks, designs, together):
    one_seed = {dataset: {"test1": by_seed["test1"]} for dataset, by_seed in designs.items()}
    expected = {key: trace for key, trace in together["random"].items() if key[1] == "test1"}
    assert_equal_traces(traces_of(methods["random"], tasks, one_seed), expected)


def test_designs_of_different_lengths(methods, tasks, designs, together):
    longer = {dataset: {**by_seed, "long": np.arange(9)} for dataset, by_seed in designs.items()}
    traces = traces_of(methods["random"], tasks, longer)
    assert len(traces) == 12
    assert_equal_traces({key: trace for key, trace in traces.items() if key[1] != "long"}, together["random"])


@pytest.mark.parametrize("name", ["random", "dre-as-it-is"])
def test_side_by_side_is_one_by_one(name, methods, tasks, designs):
    one_by_one, side_by_side = (traces_of(methods[name], tasks, designs, side_by_side=flag) for flag in (False, True))
    assert_equal_traces(one_by_one, side_by_side)


@pytest.mark.thorough
def test_side_by_side_is_one_by_one_but_for_rounding(methods, tasks, designs, together):
    # Products of other shapes add up in another order: after some epochs two candidates may change places.
    side_by_side = traces_of(methods["dre"], tasks, designs, side_by_side=True)
    same = [np.array_equal(trace, together["dre"][name]) for name, trace in side_by_side.items()]
    assert np.mean(same) >= 0.5


def test_the_key_and_the_names_decide(methods, tasks, designs, together):
    other_key = traces_of(methods["random"], tasks, designs, key=jax.random.key(8))
    assert any((trace != together["random"][name]).any() for name, trace in other_key.items())
    renamed = traces_of(methods["random"], {"other": tasks["wine-proline"]}, {"other": designs["wine-proline"]})
    assert any((trace != together["random"]["wine-proline", seed]).any() for (_, seed), trace in renamed.items())


PROGRAM = """
import json, sys
import jax, numpy as np
from dre_jax.data import bundled
from dre_jax.methods import DRE, RandomSearch
from dre_jax.model import ModelConfig, init
from dre_jax.search import BatchConfig, run_tasks
from dre_jax.training import FineTuneConfig

space = bundled.load("svm")
tasks = dict(list(space.test.items())[:2])
model = ModelConfig(members=2, hidden=(8, 8), phi=(8, 8), rho=(8, 4))
dre = DRE(model=model, fine_tuning=FineTuneConfig(epochs=15, learning_rate=0.01))
params = init(model, space.n_columns, jax.random.key(0))
assert len(jax.devices()) == 4
for method, start in ((RandomSearch(), None), (dre, params)):
    # Two tasks: shared out over two devices; over four together with their designs, which the devices do not divide.
    for devices in (1, 2, 4):
        config = BatchConfig(devices=devices)
        traces = run_tasks(method, start, tasks, space.designs, n_trials=6, key=jax.random.key(3), config=config)
        print(json.dumps(sorted((d, s, t.tolist()) for d, s, t in traces)))
"""


@pytest.mark.slow
@pytest.mark.multiprocess
def test_the_number_of_devices_does_not_matter():
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 6
    assert len(lines[0]) == 10
    for random, dre in zip(lines[1:3], lines[4:], strict=True):
        assert random == lines[0]
        assert dre == lines[3]
    assert lines[0] != lines[3]


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


def test_incumbents_against_a_loop():
    rng = np.random.default_rng(1)
    for _ in range(20):
        response, rows = rng.random(30), rng.permutation(30)
        design, picks = rows[:4], rows[4:12].copy()
        end = rng.integers(0, 9)
        picks[end:] = -1
        best = max(response[design])
        expected = [best] + [best := max(best, response[row]) if row >= 0 else best for row in picks]
        np.testing.assert_array_equal(incumbents(response, design, picks), expected)


def test_buckets():
    sizes = np.arange(1, 5000)
    buckets = np.array([bucket(int(n)) for n in sizes])
    assert (buckets >= sizes).all()
    assert (buckets <= 1.25 * sizes).all()
    assert (np.diff(buckets) >= 0).all()
    assert len(set(buckets)) < 50


def test_keys_of_runs_come_from_names_alone():
    assert run_id("123456789") == 0xCBF43926  # the check value of CRC-32
    names = [(dataset, seed) for dataset in ("a", "b", "test0") for seed in ("test0", "test1", "a")]
    drawn = {jax.random.key_data(run_key(KEY, *name)).tobytes() for name in names}
    assert len(drawn) == len(names)


def test_a_task_without_a_design(methods, tasks):
    with pytest.raises(DataError, match="every task needs an initial design, but dataset 'wine-proline' has none"):
        next(run_tasks(*methods["random"], tasks, {}, n_trials=2, key=KEY))
