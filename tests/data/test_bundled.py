"""What PROVENANCE.md promises of the shipped files, read with the standard library and not with our reader."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_jax.data import bundled

FOLDER = bundled.path()
SPLITS = ("train", "validation", "test")
SPACES = ("svm", "random-forest", "gradient-boosting", "nearest-neighbours")


@cache
def read(name: str) -> Any:
    content = (FOLDER / name).read_bytes()
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def test_the_files_are_small_and_name_no_time_and_no_machine() -> None:
    assert bundled.spaces() == list(SPACES)
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    for path in files:
        if path.suffix == ".gz":
            assert path.read_bytes()[4:8] == bytes(4)
        if path.name != "PROVENANCE.md":
            assert tuple(read(path.name)) == SPACES
        if path.suffix != ".gz":
            places = ("/home/", "/tmp/", f"{Path.home()}/", f"{Path.cwd()}/")
            assert not any(place in path.read_text() for place in places)


@pytest.mark.parametrize("space", SPACES)
def test_the_loader_returns_the_content_of_the_files(space: str) -> None:
    loaded = bundled.load(space)
    for split in SPLITS:
        stored = read(f"meta-{split}-dataset.json.gz")[space]
        assert list(loaded.split(split)) == list(stored)
        for name, task in loaded.split(split).items():
            np.testing.assert_array_equal(task.X, np.asarray(stored[name]["X"], np.float32))
            np.testing.assert_array_equal(task.y, [value for (value,) in stored[name]["y"]])
    np.testing.assert_equal(loaded.designs, read("bo-initializations.json.gz")[space])
