"""Paths of standard output, pipes and devices: they are written to, and never replaced by a file."""

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

_MAX_LINKS = 40
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Returns the kind of stream or device at a path, in words; None for a regular file or none.

    Example:
      >>> kind_of("/dev/null"), kind_of("no such file")
      ('a device', None)
    """
    if _open_number(path) is not None:
        return "an open file of this process"
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    except (OSError, ValueError):
        return None


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is that of a pipe, a character device, or an open file of this process by its number.

    Example:
      >>> is_stream("/dev/null"), is_stream("study.json")
      (True, False)
    """
    return kind_of(path) in ("an open file of this process", "a pipe", "a device")


def check_stream(path: str | os.PathLike[str]) -> None:
    """Raises `OSError` unless this process may write to a stream."""
    number = _open_number(path)
    if number is None:
        is_writable = os.access(path, os.W_OK)
    else:
        import fcntl  # not on Windows, which has no such paths

        is_writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    if not is_writable:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def open_stream(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a stream to write to, after flushing printed output. Raises `OSError`."""
    number = _open_number(path)
    if number is None:
        return open(path, "wb")
    for printed in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # None or closed
            printed.flush()
    # Not by the path: if standard output is a file, opening the path would truncate it.
    return os.fdopen(os.dup(number), "wb")


def _open_number(path: str | os.PathLike[str]) -> int | None:
    """Returns the number of the open file that a path such as /dev/stdout names; None for any other path."""
    link = Path(path)
    for _ in range(_MAX_LINKS):
        folder = os.path.realpath(link.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and link.name.isdigit():
            return int(link.name)
        if not os.path.islink(link):
            return None
        link = Path(folder, os.readlink(link))
    return None
