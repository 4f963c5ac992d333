"""Meta-training on rows that are sent to the devices ahead of their use: nothing else changes."""

import tracemalloc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.data.sampling import ListRows
from dre_jax.methods.dre import LossConfig, MetaTrainConfig, ModelConfig, meta_train, stream, trainer
from dre_jax.methods.dre.host_table import HostTable
from dre_jax.runtime import devices

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
CONFIG = MetaTrainConfig(steps=10, evaluate_every=4, n_support=3, n_query=6, evaluation_lists=8, lists_per_step=2)
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def space(make_space):
    return make_space("s", n_rows=12)


@pytest.fixture
def alive(monkeypatch):
    """How many portions' rows were there at once, at most."""
    most, rows, place = [0], [], stream._put_parts

    def placed(*arguments):
        result = place(*arguments)
        rows.append(weakref.ref(result.x))
        most[0] = max(most[0], sum(one() is not None for one in rows))
        return result

    monkeypatch.setattr(stream, "_put_parts", placed)
    return most


@pytest.mark.slow
def test_from_files_and_from_the_middle_of_a_portion_on(tmp_path, monkeypatch, space, alive):
    monkeypatch.setattr(trainer, "portion", lambda config: 2)
    expected = meta_train(space, MODEL, CONFIG, key=KEY, stream=False)
    assert alive == [0]

    def mapped(task):
        path = tmp_path / f"{task.name}.npy"
        np.save(path, task.X)
        return Task(task.name, np.load(path, mmap_mode="r"), task.y)

    files = replace(space, train={name: mapped(task) for name, task in space.train.items()})
    shorter = replace(CONFIG, steps=6)
    meta_train(space, MODEL, shorter, key=KEY, folder=tmp_path / "s", stream=False)
    # What is streamed begins in the middle of the portion that it would be without the interruption.
    monkeypatch.setattr(trainer, "portion", lambda config: 4)
    monkeypatch.setattr(stream, "LISTS_AT_ONCE", 1)  # each step by whatever thread comes first
    result = meta_train(files, MODEL, CONFIG, key=KEY, folder=tmp_path / "s", stream=True)
    assert result.resumed_from == 6
    assert [entry for entry in result.history if entry.step != 6] == expected.history
    jax.tree.map(np.testing.assert_array_equal, result.params, expected.params)
    assert alive == [2]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "config"),
    [
        ({"range_limit": 3.0}, {"own_lists": False}),
        ({}, {"loss": LossConfig(name="mean_squared_error")}),
        ({"range_limit": 3.0}, {"loss": LossConfig(weights="inverse_log")}),
        ({"context": "shared"}, {"own_lists": False, "n_query": 40}),
    ],
    ids=["shared-lists", "values", "scan", "short-tasks"],
)
def test_streaming_changes_nothing(space, model, config):
    model, config = replace(MODEL, **model), replace(CONFIG, steps=4, **config)
    result, expected = (meta_train(space, model, config, key=KEY, stream=way) for way in (True, False))
    assert result.history == expected.history
    jax.tree.map(np.testing.assert_array_equal, result.params, expected.params)


@pytest.mark.parametrize(("limit", "streams"), [(None, False), (3 * 1440, False), (3 * 1440 - 1, True)])
def test_tables_above_a_third_of_the_memory_are_streamed(monkeypatch, space, limit, streams):
    stats = None if limit is None else {"bytes_limit": limit}
    here = [SimpleNamespace(memory_stats=lambda: stats), SimpleNamespace(memory_stats=lambda: {"bytes_limit": 10**9})]
    monkeypatch.setattr(devices, "local", lambda: here)
    # Two tasks of twelve rows, and one: eight columns, a response and a level of four bytes each.
    tables = space.train, space.validation
    assert stream.must_stream(*tables) == streams


@pytest.mark.slow
def test_a_file_is_not_read_into_memory(tmp_path):
    n, d = 20_000, 128
    written = np.random.default_rng(0).random((n, d), np.float32)
    np.save(tmp_path / "x.npy", written)
    y = np.arange(n, dtype=np.float64)
    tracemalloc.start()
    table = HostTable({"a": Task("a", np.load(tmp_path / "x.npy", mmap_mode="r"), y)})
    some, where = np.arange(50).reshape(1, 50), np.ones((1, 50), bool)
    result = table.gather(ListRows(some, where, some + 50, where))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < written.nbytes / 4
    np.testing.assert_array_equal(result.x[0], written[::-1][:100])
