"""Journals of Optuna's studies with an incomplete last line, left by a killed process or a full disk."""

import itertools
import json
import os
from collections.abc import Generator
from typing import IO, Any

from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from dre_jax.errors import DataError

_BLOCK = 1 << 16
_ENTRY = b'{"op_code"'  # how Optuna begins an entry


class WholeLineJournal(JournalFileBackend):
    """A journal file to which no process appends an unreadable line: an incomplete last entry is dropped.

    No process has read such an entry. Optuna appends to it, and the two together are a line that no process can read.
    """

    def __init__(self, path: str) -> None:
        """Opens a journal, or creates it."""
        self._path, self._symlink_lock = path, JournalFileSymlinkLock(path)
        super().__init__(path, self._symlink_lock)

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Yields the entries from a number on. Raises `DataError`, with a remedy, for a line that is not an entry."""
        number = log_number_from
        try:
            for entry in super().read_logs(log_number_from):
                number += 1
                yield entry
        except ValueError as error:
            with open(self._path, "rb") as stream:
                line = next(itertools.islice(stream, number, None), b"")
            raise self._fault(number, line) from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Appends entries under the lock. Raises `DataError`, with a remedy, after a line that is not an entry."""
        lines = "".join(f"{json.dumps(log, separators=(',', ':'))}\n" for log in logs)
        self._symlink_lock.acquire()
        try:
            with open(self._path, "r+b") as stream:
                stream.seek(self._end_of_entries(stream))
                stream.truncate()
                stream.write(lines.encode())
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            self._symlink_lock.release()

    def _end_of_entries(self, stream: IO[bytes]) -> int:
        """Returns where the next entry belongs: the end of the file, or the start of an incomplete last entry."""
        start, line = _last_line(stream)
        if not line.endswith(b"\n") and (line.startswith(_ENTRY) or _ENTRY.startswith(line)):
            return start
        try:
            json.loads(line)
        except ValueError as error:
            stream.seek(0)
            number = sum(1 for _ in stream) - 1
            raise self._fault(number, line) from error
        return start + len(line)

    def _fault(self, number: int, line: bytes) -> DataError:
        rule = f"{self._path} must be a journal of Optuna's studies, but line {number + 1} is no entry"
        n = line.rfind(_ENTRY)
        remedy = f": delete its half-written start, the {n} characters before the last {_ENTRY.decode()}"
        return DataError(rule + remedy if n > 0 else rule)


def _last_line(stream: IO[bytes]) -> tuple[int, bytes]:
    """Returns the position and the content of the last line of a file, which may be incomplete."""
    position, tail = stream.seek(0, os.SEEK_END), b""
    while position > 0:
        start = max(0, position - _BLOCK)
        stream.seek(start)
        tail, position = stream.read(position - start) + tail, start
        line_break = tail.rfind(b"\n", 0, len(tail) - 1)
        if line_break >= 0:
            return position + line_break + 1, tail[line_break + 1 :]
    return 0, tail
