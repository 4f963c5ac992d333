"""Locks between the processes of a machine."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dre_jax.errors import DataError

if TYPE_CHECKING:
    from filelock import BaseFileLock


LOCK = ".lock"
"""Name of a folder's lock, a file that is there while somebody holds it."""


@contextlib.contextmanager
def folder_lock(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Holds an exclusive lock on a folder; waits while another process of this machine holds it.

    For the time between a check of a folder's content and a write. In a folder that must not be written it does not
    wait.
    """
    from filelock import FileLock

    with _held(FileLock(Path(folder) / LOCK)):
        yield


@contextlib.contextmanager
def file_in_use(path: str | os.PathLike[str]) -> Iterator[None]:
    """Marks a file as in use by this process, as long as the process lives; the mark is a lock on `.NAME.lock` beside.

    The system ends the lock of a process that was killed. Raises `DataError` if another process uses the file; the
    message names the process.
    """
    from filelock import FileLock, Timeout

    path = Path(os.path.realpath(path))
    mark = path.parent / f".{path.name}.lock"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_held(FileLock(mark, timeout=0)))
        except Timeout:
            user = ""
            with contextlib.suppress(OSError):  # Windows lets nobody else read it
                user = mark.read_text(encoding="utf-8").strip()
            rule = f"{path} must be used by one process at a time, but {user or 'another process'} uses it"
            raise DataError(f"{rule}: wait until that one ends, or give another file") from None
        with contextlib.suppress(OSError):
            mark.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
        yield


@contextlib.contextmanager
def _held(lock: BaseFileLock) -> Iterator[None]:
    """Acquires a lock, where the folder can be written; its file goes before the lock does. Raises `Timeout`."""
    from filelock import Timeout

    try:
        lock.acquire()
    except Timeout:
        raise
    except OSError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(lock.lock_file)
        lock.release()
