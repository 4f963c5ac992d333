import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, fingerprint
from dre_jax.errors import ConfigError, DataError


def test_missing_splits_and_tasks():
    with pytest.raises(ConfigError, match="the split must be one of train, validation, test, but got 'dev'"):
        SearchSpace("s").split("dev")
    with pytest.raises(DataError, match="space 's': a search space must hold at least one task, but it has none"):
        _ = SearchSpace("s").n_columns


def test_fingerprint_sees_every_value_and_no_order():
    one, other = (Task(name, np.full((2, 2), 0.5, np.float32), np.array([0.1, 0.2])) for name in "ab")
    digest = fingerprint({"a": one, "b": other})
    assert len(digest) == 64
    assert digest == fingerprint(SearchSpace("s", train={"b": other, "a": one}, test={"c": one}))
    changes = [
        {"a": one},
        {"a": one, "c": other},
        {"a": one, "b": Task("b", other.X, other.y[::-1])},
        {"a": one, "b": Task("b", np.nextafter(other.X, np.float32(1)), other.y)},
        {"a": one, "b": Task("b", other.X.reshape(4, 1), other.y)},
        {"a": one, "b": replace(other, features=np.array([1.0], np.float32))},
        {"a": one, "b": replace(other, features=np.array([np.nan], np.float32))},
    ]
    assert len({digest, *map(fingerprint, changes)}) == 1 + len(changes)
    # Checkpoints keep it: another value in a later release would make them refuse the data they were trained on.
    task = Task("wine", np.array([[0.5, 0.25]], np.float32), np.array([0.75]))
    parts = b'["wine", 1, 2]', struct.pack("<2f", 0.5, 0.25), struct.pack("<d", 0.75)
    assert fingerprint({"wine": task}) == hashlib.sha256(b"".join(parts)).hexdigest()
