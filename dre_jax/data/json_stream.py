"""Reads `{space: {dataset: {..}}}` files one dataset at a time.

HPO-B's training file is over a gigabyte of text and many times that as Python objects, while one search space is
wanted. Braces outside strings are counted with one compiled pattern, over 200 MB/s, which tells where each dataset
lies; the text around the datasets, a few kilobytes, is parsed as JSON. A dataset that nobody requests never becomes an
object, and beyond braces and strings it is not checked. The file is mapped, a compressed one unpacked into a temporary
file first: held in memory is one dataset's text.
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

from dre_jax.data.checks import show
from dre_jax.data.files import open_binary, parse_json, place
from dre_jax.errors import DataError

# A whole string, a brace, or the quote of a string that does not end. Square brackets need no counting: what is
# skipped is always an object. Single characters stand as alternatives, not as a class: so re scans three times as fast.
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|\{|\}|"', re.DOTALL)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Index(NamedTuple):
    """Where the datasets of a file lie."""

    path: Path
    text: bytes | mmap.mmap
    spaces: dict[str, dict[str, tuple[int, int]]]
    """Space -> dataset -> first byte, and the byte after the last."""

    def load(self, space: str, dataset: str) -> Any:
        """Returns the object of a dataset."""
        begin, end = self.spaces[space][dataset]
        return parse_json(self.text[begin:end], place(self.path, space, dataset), lambda position: begin + position)


def list_spaces(path: str | os.PathLike[str]) -> list[str]:
    """The search spaces of a file, in its order. Raises `DataError` as `iter_datasets` does."""
    with open_index(path) as index:
        return list(index.spaces)


def iter_datasets(path: str | os.PathLike[str], space: str) -> Iterator[tuple[str, Any]]:
    """The datasets of one search space as `(name, object)`, in the file's order; none when the space is not there.

    The whole file is scanned first, so damage after the space raises an error too. Raises `DataError`, while iterating,
    for a file that is missing, empty, cut off, not JSON or not made of objects, and for a space or dataset that occurs
    twice; the message names the file and, where known, position, space and dataset.
    """
    with open_index(path) as index:
        for dataset in index.spaces.get(space, {}):
            yield dataset, index.load(space, dataset)


@contextlib.contextmanager
def open_index(path: str | os.PathLike[str]) -> Iterator[Index]:
    """Yields the index of a file. Raises `DataError` as `iter_datasets` does."""
    path = Path(path)
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(open_binary(path))
        if path.suffix == ".gz":
            gzip_stream, stream = stream, stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(gzip_stream, stream)
            stream.flush()
        empty = os.fstat(stream.fileno()).st_size == 0
        text = b"" if empty else stack.enter_context(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        yield Index(path, text, _locate_datasets(text, path))


def _locate_datasets(text: bytes | mmap.mmap, path: Path) -> dict[str, dict[str, tuple[int, int]]]:
    """Returns the extents of all datasets by space and name."""
    extents: list[tuple[int, int]] = []
    depth = begin = 0
    for match in TOKEN.finditer(text):
        token = match.group()
        if token == b"{":
            depth += 1
            if depth == 3:
                begin = match.start()
        elif token == b"}":
            depth -= 1
            if depth == 2:
                extents.append((begin, match.end()))
        elif token == b'"':
            raise DataError(f"{path}: the file ends inside a name (byte {match.start()})")
    # What is left without the datasets' content is parsed: `{space: {dataset: {}}}`.
    cuts = [0, *(cut for begin, end in extents for cut in (begin + 1, end - 1)), len(text)]
    rest = b"".join(text[start:stop] for start, stop in zip(cuts[::2], cuts[1::2], strict=True))
    start = rest.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
    if not start:
        raise DataError(f"{path}: the file is empty")
    if start != b"{":
        kind = "the top level must be an object {space: {dataset: ..}}"
        raise DataError(f"{path}: {kind}, but it starts with {start.decode('latin-1')!r}")
    if depth > 0:
        raise DataError(f"{path}: the file ends inside an object (byte {len(text)})")

    def in_file(position: int) -> int:
        for begin, end in extents:
            position += end - begin - 2 if position > begin else 0
        return position

    remaining = iter(extents)
    spaces = {}
    for space, datasets in parse_json(rest, str(path), in_file).items():
        _check_object(datasets, place(path, space))
        for dataset, value in datasets.items():
            _check_object(value, place(path, space, dataset))
        spaces[space] = {dataset: next(remaining) for dataset in datasets}
    return spaces


def _check_object(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object must follow, but got {show(value)}")
