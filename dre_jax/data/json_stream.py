"""Reads `{space: {dataset: {..}}}` files one dataset at a time.

HPO-B's training file is over a gigabyte of text and many times that as Python objects, while one search space is
wanted. Everything else is skipped by counting braces outside strings with one compiled pattern, over 200 MB/s: it never
becomes an object, and beyond braces and strings it is not checked. Held in memory: one dataset's text and one chunk.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dre_jax.data.files import open_binary, parse_json, place
from dre_jax.errors import DataError

__all__ = ["iter_datasets", "iter_everything", "list_spaces"]

CHUNK_BYTES = 1 << 20
# Without a limit a lost closing quote would pull the rest of the file into memory.
LONGEST_NAME = 1 << 16
# A whole string, a brace, or the quote of a string that the chunk cuts off. Square brackets need no counting: what is
# skipped is always an object. Single characters stand as alternatives, not as a class: so re scans three times as fast.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|\{|\}|"', re.DOTALL)
SPACES = re.compile(rb"[ \t\r\n]*")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Entry(NamedTuple):
    """One dataset of a file."""

    space: str
    dataset: str
    value: Any
    """Its object; None where it was skipped."""
    end: int
    """The text read so far, in bytes."""


def list_spaces(path: str | os.PathLike[str]) -> list[str]:
    """The search spaces of a file, in its order. Raises `DataError` as `iter_datasets` does."""
    spaces = []
    with _opened(path) as cursor:
        for space in cursor.document():
            spaces.append(space)
            cursor.skip_object()
    return spaces


def iter_datasets(path: str | os.PathLike[str], space: str) -> Iterator[tuple[str, Any]]:
    """The datasets of one search space as `(name, object)`, in the file's order; none when the space is not there.

    The whole file is scanned, so that damage after the space is found too. Raises `DataError`, while iterating, for a
    file that is missing, empty, cut off, not JSON or not made of objects, and for a space or dataset that occurs twice;
    the message names the file and, where known, byte position, space and dataset.
    """
    with _opened(path) as cursor:
        for name in cursor.document():
            if name == space:
                for dataset in cursor.members():
                    yield dataset, cursor.load_object()
            else:
                cursor.skip_object()


def iter_everything(path: str | os.PathLike[str], *, first_only: bool = False) -> Iterator[Entry]:
    """The datasets of all search spaces, in the file's order and in one pass; with `first_only` each space's first.

    Raises `DataError` as `iter_datasets` does.
    """
    with _opened(path) as cursor:
        for space in cursor.document():
            for number, dataset in enumerate(cursor.members()):
                value = None
                if first_only and number:
                    cursor.skip_object()
                else:
                    value = cursor.load_object()
                yield Entry(space, dataset, value, cursor.start + cursor.at)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[_Cursor]:
    path = Path(path)
    with open_binary(path) as stream:
        yield _Cursor(stream, path)


class _Cursor:
    """A position in the file: `buffer[at:]` is what was read and not yet used."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self.stream = stream
        self.path = path
        self.buffer = b""
        self.at = 0
        self.start = 0  # the buffer's position in the file
        self.names: list[str] = []  # the keys on the way down: space, dataset

    def error(self, message: str) -> DataError:
        return DataError(f"{place(self.path, *self.names)}: {message} (byte {self.start + self.at})")

    def more(self) -> bool:
        """Reads on, forgetting what was used; false at the end of the file."""
        chunk = self.stream.read(CHUNK_BYTES)
        self.start += self.at
        self.buffer = self.buffer[self.at :] + chunk
        self.at = 0
        return bool(chunk)

    def peek(self) -> bytes:
        """The next byte that is no white space; empty at the end of the file."""
        while True:
            match = SPACES.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at : self.at + 1]
            if not self.more():
                return b""

    def take(self, allowed: bytes, what: str) -> bytes:
        found = self.peek()
        if not found:
            raise self.error(f"the file ends where {what} must follow")
        if found not in allowed:
            raise self.error(f"{what} must follow, but got {found.decode('latin-1')!r}")
        self.at += 1
        return found

    def string(self) -> str:
        self.take(b'"', "a quoted name")
        self.at -= 1
        while True:
            match = TOKEN.match(self.buffer, self.at)
            if match and match.end() > self.at + 1:
                break
            self.refill_string()
        text, offset = match.group(), self.start + self.at
        self.at = match.end()
        return str(parse_json(text, place(self.path, *self.names), offset))

    def refill_string(self) -> None:
        if len(self.buffer) - self.at > LONGEST_NAME:
            raise self.error(f"a name must be shorter than {LONGEST_NAME} bytes; is a closing quote missing?")
        if not self.more():
            raise self.error("the file ends inside a name")

    def document(self) -> Iterator[str]:
        """The top level's keys; the caller uses up each key's value."""
        if self.peek() == BYTE_ORDER_MARK[:1] and self.buffer.startswith(BYTE_ORDER_MARK, self.at):
            self.at += len(BYTE_ORDER_MARK)
        first = self.peek()
        if not first:
            raise self.error("the file is empty")
        if first != b"{":
            kind = "the top level must be an object {space: {dataset: ..}}"
            raise self.error(f"{kind}, but it starts with {first.decode('latin-1')!r}")
        yield from self.members()
        if self.peek():
            raise self.error("the file must end after the top-level object, but more text follows")

    def members(self) -> Iterator[str]:
        """An object's keys; the caller uses up each key's value."""
        seen: set[str] = set()
        self.take(b"{", "an object")
        if self.peek() == b"}":
            self.at += 1
            return
        end = b","
        while end == b",":
            name = self.string()
            self.take(b":", "a colon")
            self.names.append(name)
            if name in seen:
                raise self.error("occurs twice, but a name must be unique")
            seen.add(name)
            yield name
            self.names.pop()
            end = self.take(b",}", "a comma or a closing brace")

    def skip_object(self) -> None:
        for _ in self.pieces():
            pass

    def load_object(self) -> Any:
        self.peek()
        offset = self.start + self.at
        return parse_json(b"".join(self.pieces()), place(self.path, *self.names), offset)

    def pieces(self) -> Iterator[bytes]:
        """The text of the object that follows, chunk by chunk."""
        self.take(b"{", "an object")
        self.at -= 1
        depth = 0
        while True:
            begin = self.at
            depth, whole_string = self.advance(depth)
            yield self.buffer[begin : self.at]
            if depth == 0:
                return
            if not whole_string:
                self.refill_string()
            elif not self.more():
                raise self.error("the file ends inside an object")

    def advance(self, depth: int) -> tuple[int, bool]:
        """Moves to the end of the object or of the buffer, or to a string that the buffer cuts off (then false)."""
        buffer = self.buffer
        for match in TOKEN.finditer(buffer, self.at):
            token = match.group()
            if token == b"{":
                depth += 1
            elif token == b"}":
                depth -= 1
                if depth == 0:
                    self.at = match.end()
                    return depth, True
            elif token == b'"':
                self.at = match.start()
                return depth, False
        self.at = len(buffer)
        return depth, True
