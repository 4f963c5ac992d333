"""Locks between the processes of a machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


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
