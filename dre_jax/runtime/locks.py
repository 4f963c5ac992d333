"""Work that one process of a machine does at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Waits until no other process of this machine is inside such a block about the folder.

    For the moment between seeing what a folder has and writing to it. Where there are no locks, on Windows and on some
    file systems of a network, it does not wait.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)  # which ends the lock
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
