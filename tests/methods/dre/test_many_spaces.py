"""Search spaces trained side by side are the spaces trained alone."""

import dataclasses
import importlib
import json
import shutil

import chex
import jax
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, bundled
from dre_jax.errors import DataError
from dre_jax.methods.dre import MetaTrainConfig, ModelConfig, meta_train
from dre_jax.methods.dre.many_spaces import SpaceTraining, meta_train_side_by_side, runs_side_by_side, stack_tables
from dre_jax.methods.dre.steps import train_side_by_side
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint
from dre_jax.runtime import devices

MODEL = ModelConfig(members=2, hidden=(8, 8), phi=(8, 8), rho=(4,))
CONFIG = MetaTrainConfig(steps=6, evaluate_every=3, n_support=3, n_query=8, evaluation_lists=4)
KEY = jax.random.key(5)


def tasks(columns, rows, count, seed):
    rng, sizes = np.random.default_rng(seed), [rows + 7 * i for i in range(count)]
    return {f"{n}": Task(f"{n}", rng.random((n, columns), np.float32), rng.integers(0, n, n) / n) for n in sizes}


SPACES = [
    SearchSpace("narrow", train=tasks(2, 20, 3, 0), validation=tasks(2, 15, 1, 1)),
    SearchSpace("wide", train=tasks(5, 9, 1, 2)),
    SearchSpace("long", train=tasks(3, 60, 2, 3), validation=tasks(3, 30, 2, 4)),
]


def assert_same_results(results, expected):
    """XLA sums over padded columns in another order."""
    for one, alone in zip(results, expected, strict=True):
        assert one.step == alone.step
        for entry, other in zip(one.history, alone.history, strict=True):
            assert entry.step == other.step
            assert entry.train == pytest.approx(other.train, rel=1e-4)
            assert entry.validation == (other.validation and pytest.approx(other.validation, rel=1e-4))
        chex.assert_trees_all_equal_shapes(one.params, alone.params)


@pytest.fixture(scope="module")
def alone():
    devices.use(1)
    try:
        return [meta_train(space, MODEL, CONFIG, key=KEY) for space in SPACES]
    finally:
        devices.use(None)


@pytest.mark.slow
def test_spaces_learn_what_they_learn_alone(alone):
    trainings = [SpaceTraining(space) for space in SPACES]
    results = meta_train_side_by_side(trainings, MODEL, CONFIG, key=KEY)
    assert_same_results(results, alone)
    before = train_side_by_side._cache_size()
    meta_train_side_by_side(trainings, MODEL, CONFIG, key=KEY)
    assert train_side_by_side._cache_size() == before


@pytest.mark.slow
def test_interrupted_and_finished_spaces_go_on(alone, tmp_path):
    """One space has all its steps already, one begins, and one was interrupted."""
    first, short = SpaceTraining(SPACES[0], tmp_path / "narrow"), dataclasses.replace(CONFIG, steps=3)
    meta_train_side_by_side([first], MODEL, CONFIG, key=KEY)
    done = {path: path.read_bytes() for path in sorted((tmp_path / "narrow").rglob("*")) if path.is_file()}
    interrupted = SpaceTraining(SPACES[2], tmp_path / "long")
    meta_train_side_by_side([interrupted], MODEL, short, key=KEY)
    reports = []
    trainings = [first, SpaceTraining(SPACES[1], tmp_path / "wide"), interrupted]
    results = meta_train_side_by_side(trainings, MODEL, CONFIG, key=KEY, report=reports.append)
    assert_same_results(results, alone)
    assert [result.resumed_from for result in results] == [6, None, 3]
    assert {path: path.read_bytes() for path in done} == done
    assert [TrainingCheckpoint(one.folder).latest_step() for one in trainings] == [6, 6, 6]
    assert [report.step for report in reports] == [3, 6]
    # Alone, the same command finds nothing to do; and what is saved is the space's own, without padding.
    result = meta_train(SPACES[1], MODEL, CONFIG, key=KEY, folder=shutil.copytree(tmp_path / "wide", tmp_path / "copy"))
    assert (result.step, result.resumed_from) == (6, 6)


@pytest.mark.slow
def test_patience_ends_a_space_alone():
    config = dataclasses.replace(CONFIG, evaluate_every=1, patience=1, learning_rate=0.1)
    spaces = [SPACES[0], SPACES[2]]
    results = meta_train_side_by_side([SpaceTraining(space) for space in spaces], MODEL, config, key=KEY)
    devices.use(1)
    try:
        expected = [meta_train(space, MODEL, config, key=KEY) for space in spaces]
    finally:
        devices.use(None)
    assert_same_results(results, expected)
    with pytest.raises(DataError, match="search space 'wide' has none"):
        meta_train_side_by_side([SpaceTraining(SPACES[1])], MODEL, config, key=KEY)


def test_tables_are_padded_to_one_size():
    tables = stack_tables([space.train for space in SPACES])
    assert tables.x.shape == (3, 127, 5)
    assert np.asarray(tables.n_tasks).tolist() == [3, 1, 2]
    assert np.asarray(tables.size).tolist() == [[20, 27, 34], [9, 0, 0], [60, 67, 0]]


def test_a_cpu_trains_one_space_after_the_other():
    assert not runs_side_by_side([SpaceTraining(space) for space in SPACES], MODEL, CONFIG)


@pytest.mark.thorough
def test_the_command_trains_all_spaces_at_once(cli, tmp_path, monkeypatch):
    """As where there is an accelerator; the folders are those of spaces one after the other."""
    names = ("svm", "nearest-neighbours")
    command = ["meta-train", "--data", bundled.path(), *(part for name in names for part in ("--space", name))]
    command += ["--method", "dre", "--steps", "2", "--quiet", "--out"]
    devices.use(1)
    try:
        status, expected, _ = cli(*command, tmp_path / "alone")
        assert status == 0
        for name in ("dre_jax.methods.dre.many_spaces", "dre_jax.cli.meta_train"):
            monkeypatch.setattr(importlib.import_module(name), "gains_side_by_side", lambda: True)
        before = train_side_by_side._cache_size()
        status, output, _ = cli(*command, tmp_path / "together")
    finally:
        devices.use(None)
    assert (status, train_side_by_side._cache_size()) == (0, before + 1)
    assert output == expected.replace("alone", "together")
    for name in names:
        paths = [tmp_path / way / name / "metadata.json" for way in ("alone", "together")]
        metadata = [json.loads(path.read_text()) for path in paths]
        histories = [np.array(one.pop("history"), float) for one in metadata]
        np.testing.assert_allclose(*histories, rtol=1e-4)
        assert metadata[0] == metadata[1]
