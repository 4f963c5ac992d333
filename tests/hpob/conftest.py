"""What the tests of the protocol share: small data in HPO-B's layout, checkpoints of random weights, result files."""

import json

import pytest

from dre_jax.data import write_dataset


@pytest.fixture(scope="session")
def spaces(make_space):
    """Two of one shape, which share their programs, a wider one, and one without test tasks."""
    result = make_space("s"), make_space("t", seed=1), make_space("wide", 3, seed=2), make_space("untested", test="")
    return {space.name: space for space in result}


@pytest.fixture(scope="session")
def data(tmp_path_factory, spaces):
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder, spaces.values())
    return folder


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory, save_checkpoint, spaces):
    """A root of checkpoints; treat as read-only."""
    root = tmp_path_factory.mktemp("checkpoints")
    for name in ("s", "t", "wide"):
        save_checkpoint(root / name, spaces[name])
    return root


@pytest.fixture(scope="session")
def content():
    """A result file's content, without the versions of packages."""

    def read(path):
        result = json.loads(path.read_text())
        result["_meta"].pop("versions")
        return result

    return read
