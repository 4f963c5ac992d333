"""Locks between the processes of a machine."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dre_jax.errors import DataError

LOCK = ".lock"
"""Name of a folder's lock, a file that exists while a process holds the lock."""
_PATIENCE = 60.0
"""Seconds to wait for a lock that is held for the time of a write."""


@contextlib.contextmanager
def folder_lock(folder: str | os.PathLike[str], patience: float = _PATIENCE) -> Iterator[None]:
    """Holds an exclusive lock on a folder; waits while another process of this machine holds it.

    The lock is for the time between a check of a folder's content and a write. In a read-only folder it does not wait.
    Raises `DataError` after ``patience`` seconds; the message names the process that holds the lock.
    """
    use = f"has held its lock {LOCK} for {patience:g} s or more: end that one, or write to another folder"
    with _lock(Path(folder) / LOCK, patience, f"{folder} must be written by one process at a time", use):
        yield


@contextlib.contextmanager
def file_in_use(path: str | os.PathLike[str], patience: float = 0.0) -> Iterator[None]:
    """Marks a file as in use by this process, as long as the process lives; the mark is a lock on `.NAME.lock` beside.

    The system ends the lock of a process that was killed. Raises `DataError` if another process still uses the file
    after ``patience`` seconds; the message names the process.
    """
    path = Path(os.path.realpath(path))
    mark = path.parent / f".{path.name}.lock"
    use = "uses it: wait until that one ends, or give another file"
    with _lock(mark, patience, f"{path} must be used by one process at a time", use):
        yield


@contextlib.contextmanager
def _lock(path: Path, patience: float, rule: str, use: str) -> Iterator[None]:
    """Holds a lock, where a file can be created; its file names this process, and goes before the lock does.

    Raises `DataError` after ``patience`` seconds. The message has the rule, the process that holds the lock, and its
    work.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=patience)
    try:
        _create_file_beside(path)  # filelock waits for ever below /proc
        lock.acquire()
    except Timeout:
        user = ""
        with contextlib.suppress(OSError):  # Windows lets nobody else read it
            user = path.read_text(encoding="utf-8", errors="replace").strip()
        raise DataError(f"{rule}, but {user or 'another process'} {use}") from None
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        lock.release()


def _create_file_beside(path: Path) -> None:
    """Creates and removes a file in a folder, which is made if it is missing. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path.parent).close()
