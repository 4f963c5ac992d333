"""What the tests of the protocol share: small data in HPO-B's layout, checkpoints of random weights, result files."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, fingerprint, write_dataset
from dre_jax.model import ModelConfig
from dre_jax.training import MetaTrainConfig
from dre_jax.training.checkpoint import Checkpoint, describe
from dre_jax.training.steps import start

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
SEEDS = ("test0", "test1", "test2")


def make_space(name, n_columns=2, seed=0, test="xyz"):
    rng = np.random.default_rng(seed)

    def tasks(names):
        return {n: Task(n, rng.random((30, n_columns), dtype=np.float32), 7 * rng.random(30) - 3) for n in names}

    space = SearchSpace(name, train=tasks("ab"), validation=tasks("v"), test=tasks(test))
    designs = {n: {s: rng.permutation(30)[:3] for s in SEEDS} for n in (*space.validation, *space.test)}
    return dataclasses.replace(space, designs=designs)


@pytest.fixture(scope="session")
def spaces():
    """Two of one shape, which share their programs, a wider one, and one without test tasks."""
    found = make_space("s"), make_space("t", seed=1), make_space("wide", 3, seed=2), make_space("untested", test="")
    return {space.name: space for space in found}


@pytest.fixture(scope="session")
def data(tmp_path_factory, spaces):
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder, spaces.values())
    return folder


@pytest.fixture(scope="session")
def save_checkpoint(spaces):
    """Writes a checkpoint of random weights."""

    def save(folder, name, step=0, n_columns=None):
        config, key, columns = MetaTrainConfig(), jax.random.key(0), n_columns or spaces[name].n_columns
        digest = fingerprint(spaces[name]) if name in spaces else "of nothing"
        facts = describe(space=name, n_columns=columns, model=MODEL, config=config, key=key, fingerprint=digest)
        state = start(MODEL, config, columns, key)._replace(step=jax.numpy.int32(step))
        Checkpoint(folder).save(state, None, {**facts, "history": [], "best_step": None, "versions": {}})

    return save


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory, save_checkpoint):
    """A root of checkpoints; treat as read-only."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name in ("s", "t", "wide"):
        save_checkpoint(root / name, name)
    return root


@pytest.fixture(scope="session")
def content():
    """A result file's content, without the versions of packages."""

    def read(path):
        found = json.loads(path.read_text())
        found["_meta"].pop("versions")
        return found

    return read
