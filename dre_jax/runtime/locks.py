"""Locks between the processes of a machine."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from dre_jax.errors import DataError

_ATTEMPTS = 100
"""To lock a file that other processes remove meanwhile."""


@contextlib.contextmanager
def folder_lock(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Holds an exclusive lock on a folder; waits while another process of this machine holds it.

    For the time between a check of a folder's content and a write. Without file locks (Windows, some network file
    systems) it does not wait.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)  # which ends the lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def file_in_use(path: str | os.PathLike[str]) -> Iterator[None]:
    """Marks a file as in use by this process, as long as the process lives; the mark is a lock on `.NAME.lock` beside.

    The system ends the lock of a process that was killed. Without file locks (Windows, some network file systems) there
    is no mark.

    Raises:
      DataError: if another process uses the file; the message names the process.
    """
    path = Path(os.path.realpath(path))
    lock = path.parent / f".{path.name}.lock"
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            for _ in range(_ATTEMPTS):
                descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
                stack.callback(os.close, descriptor)  # which ends the lock
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    user = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
                    rule = f"{path} must be used by one process at a time, but {user} uses it"
                    raise DataError(f"{rule}: wait until that one ends, or give another file") from None
                if _is_file(descriptor, lock):
                    break  # else its user removed it before it was locked here: another process may lock a new one
            stack.callback(_remove, lock)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield


def _is_file(descriptor: int, path: Path) -> bool:
    """Returns whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
