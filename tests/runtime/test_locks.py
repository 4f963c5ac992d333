"""Locks of files in use."""

import os

import pytest

from dre_jax.errors import DataError
from dre_jax.runtime.locks import file_in_use

fcntl = pytest.importorskip("fcntl", reason="this system has no file locks")


def test_a_lock_file_removed_while_waiting_is_no_lock(tmp_path, monkeypatch):
    """Between opening and locking, the last user removes the file, and another one locks a new one."""
    path, lock = tmp_path / "study.json", tmp_path / ".study.json.lock"
    raw, others = fcntl.flock, []

    def flock(descriptor, operation):
        if not others:
            lock.unlink()
            others.append(os.open(lock, os.O_RDWR | os.O_CREAT))
            os.write(others[0], b"process 1")
            raw(others[0], operation)
        raw(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(DataError, match="by one process at a time, but process 1 uses it"), file_in_use(path):
        pass
    os.close(others[0])
    lock.unlink()
    with file_in_use(path):
        assert lock.exists()
    assert not lock.exists()
