"""The part of a file that has come so far, and what is known of the whole."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from io import RawIOBase
from pathlib import Path
from typing import Any

from dre_jax.data.files import read_json, write_json
from dre_jax.errors import DataError

__all__ = ["Part", "check_room", "disk", "megabytes", "write_whole"]


def megabytes(n_bytes: int) -> str:
    """A size for a message.

    >>> megabytes(261_011_374), megabytes(400_000), megabytes(12)
    ('261 MB', '0.4 MB', '12 bytes')
    """
    if n_bytes < 100_000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes >= 10_000_000 else f"{n_bytes / 1e6:.1f} MB"


def check_room(folder: Path, n_bytes: int, what: str) -> None:
    """Raises `DataError` when the disk that holds the folder has less than this free."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise DataError(
            f"{what} needs {megabytes(n_bytes)}, but only {megabytes(free)} are free in {folder.absolute()}"
        )


@contextlib.contextmanager
def disk(what: object) -> Iterator[None]:
    """Turns failures of the file system into a `DataError` of one line."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{what} cannot be written: {error.strerror or error}") from error


def write_whole(stream: RawIOBase, piece: bytes, path: Path) -> None:
    """Writes all of it to an unbuffered stream. Raises `DataError`, at once where a buffer would hide a full disk."""
    with disk(path):
        while piece:
            piece = piece[stream.write(piece) or 0 :]


class Part:
    """`target`.part, and beside it `target`.state: where it is from, which version it is, how long the whole is.

    What is there of another URL, or of a version without a mark, is thrown away: it must not be gone on with.
    """

    def __init__(self, target: Path, url: str) -> None:
        self.target = target
        self.url = url
        self.path = target.with_name(f"{target.name}.part")
        self.mark = ""
        self.total: int | None = None
        self._state = target.with_name(f"{target.name}.state")
        known = self._known()
        if known.get("url") == url and (known["mark"] or self.target.exists()):
            self.mark, self.total = known["mark"], known["total"]
        else:
            self.discard()

    def _known(self) -> dict[str, Any]:
        try:
            known = read_json(self._state)
        except DataError:
            return {}
        return known if isinstance(known, dict) and {"url", "mark", "total"} <= set(known) else {}

    @property
    def size(self) -> int:
        """The bytes that are here."""
        return self.path.stat().st_size if self.path.exists() else 0

    def is_complete(self) -> bool:
        """True if the whole file is in place."""
        return self.target.exists()

    def discard(self) -> None:
        """Forgets all that is here."""
        with disk(self.target):
            for path in (self.target, self.path, self._state):
                path.unlink(missing_ok=True)
        self.mark, self.total = "", None

    def begin(self, mark: str, total: int | None) -> None:
        """Empties the part for a version with this mark; only then is the mark noted, lest it vouch for old bytes."""
        self.discard()
        with disk(self.path):
            self.path.touch()
        self.mark, self.total = mark, total
        write_json(self._state, {"url": self.url, "mark": mark, "total": total})

    def check_room(self) -> None:
        """Raises `DataError` when the rest does not fit on the disk."""
        if self.total is not None:
            check_room(self.path.parent, self.total - self.size, f"the rest of {self.url}")

    @contextlib.contextmanager
    def writer(self) -> Iterator[Callable[[bytes], None]]:
        """A function that adds bytes to the part, where they stay whatever comes after."""
        with disk(self.path):
            # No buffer: what has come is in the file when the connection, or this process, ends.
            stream = self.path.open("ab", buffering=0)

        with stream:
            yield lambda piece: write_whole(stream, piece, self.path)

    def finish(self) -> None:
        """Puts the whole file in place."""
        with disk(self.target):
            with self.path.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(self.path, self.target)
