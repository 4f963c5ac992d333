"""Reads `{space: {dataset: {..}}}` files one dataset at a time.

HPO-B's training file is over a gigabyte of text and many times that as Python objects, while one search space is
wanted. Everything else is skipped by counting braces outside strings with one compiled pattern, over 200 MB/s: it never
becomes an object, and beyond braces and strings it is not checked. The file is mapped, a compressed one unpacked into a
temporary file first: held in memory is one dataset's text.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dre_jax.data.files import open_binary, parse_json, place
from dre_jax.errors import DataError

__all__ = ["iter_datasets", "iter_everything", "list_spaces"]

# A whole string, a brace, or the quote of a string that does not end. Square brackets need no counting: what is
# skipped is always an object. Single characters stand as alternatives, not as a class: so re scans three times as fast.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|\{|\}|"', re.DOTALL)
SPACES = (b" ", b"\t", b"\r", b"\n")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DatasetEntry(NamedTuple):
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
    with _open_cursor(path) as cursor:
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
    with _open_cursor(path) as cursor:
        for name in cursor.document():
            if name == space:
                for dataset in cursor.members():
                    yield dataset, cursor.load_object()
            else:
                cursor.skip_object()


def iter_everything(path: str | os.PathLike[str], *, first_only: bool = False) -> Iterator[DatasetEntry]:
    """The datasets of all search spaces, in the file's order and in one pass; with `first_only` each space's first.

    Raises `DataError` as `iter_datasets` does.
    """
    with _open_cursor(path) as cursor:
        for space in cursor.document():
            for number, dataset in enumerate(cursor.members()):
                value = None
                if first_only and number:
                    cursor.skip_object()
                else:
                    value = cursor.load_object()
                yield DatasetEntry(space, dataset, value, cursor.at)


@contextlib.contextmanager
def _open_cursor(path: str | os.PathLike[str]) -> Iterator[_Cursor]:
    path = Path(path)
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(open_binary(path))
        if path.suffix == ".gz":
            packed, stream = stream, stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(packed, stream)
            stream.flush()
        empty = os.fstat(stream.fileno()).st_size == 0
        text = b"" if empty else stack.enter_context(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        yield _Cursor(text, path)


class _Cursor:
    """A position in the file: `text[at:]` was not yet used."""

    def __init__(self, text: bytes | mmap.mmap, path: Path) -> None:
        self.text = text
        self.path = path
        self.at = 0
        self.names: list[str] = []  # the keys on the way down: space, dataset

    def error(self, message: str) -> DataError:
        return DataError(f"{place(self.path, *self.names)}: {message} (byte {self.at})")

    def peek(self) -> bytes:
        """The next byte that is no white space; empty at the end of the file."""
        while self.text[self.at : self.at + 1] in SPACES:
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, allowed: bytes, what: str) -> bytes:
        byte = self.peek()
        if not byte:
            raise self.error(f"the file ends where {what} must follow")
        if byte not in allowed:
            raise self.error(f"{what} must follow, but got {byte.decode('latin-1')!r}")
        self.at += 1
        return byte

    def string(self) -> str:
        self.take(b'"', "a quoted name")
        begin = self.at = self.at - 1
        match = TOKEN.match(self.text, begin)
        if match is None or match.group() == b'"':
            raise self.error("the file ends inside a name")
        self.at = match.end()
        return str(parse_json(match.group(), place(self.path, *self.names), begin))

    def document(self) -> Iterator[str]:
        """The top level's keys; the caller uses up each key's value."""
        if self.text[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
            self.at = len(BYTE_ORDER_MARK)
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
        names: set[str] = set()
        self.take(b"{", "an object")
        if self.peek() == b"}":
            self.at += 1
            return
        end = b","
        while end == b",":
            name = self.string()
            self.take(b":", "a colon")
            self.names.append(name)
            if name in names:
                raise self.error("occurs twice, but a name must be unique")
            names.add(name)
            yield name
            self.names.pop()
            end = self.take(b",}", "a comma or a closing brace")

    def load_object(self) -> Any:
        self.peek()
        begin = self.at
        self.skip_object()
        return parse_json(self.text[begin : self.at], place(self.path, *self.names), begin)

    def skip_object(self) -> None:
        self.take(b"{", "an object")
        depth = 1
        for match in TOKEN.finditer(self.text, self.at):
            token = match.group()
            if token == b"{":
                depth += 1
            elif token == b"}":
                depth -= 1
                if depth == 0:
                    self.at = match.end()
                    return
            elif token == b'"':
                self.at = match.start()
                raise self.error("the file ends inside a name")
        self.at = len(self.text)
        raise self.error("the file ends inside an object")
