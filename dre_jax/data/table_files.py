"""Reads files of tables, `{space: {dataset: {"X": [[..]], "y": [[..]]}}}`; a large one is converted to arrays once.

HPO-B's training file has over a gigabyte of text, but an evaluation needs one search space at a time. The first process
that reads a file of more than 16 MB parses all of it, in about three times its size of memory, and writes the tables to
`.NAME.npz` in the same folder. From then on, reading a search space takes the time of its own arrays. A file that has
changed is converted again; in a folder without write access, every process parses it.
"""

import contextlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data import checks
from dre_jax.data.files import atomic_writer, location, read_json, stamp
from dre_jax.errors import DataError

Table = dict[str, Any]
"""X and y of a task: arrays f64, or any other content of the file."""
Tables = Mapping[str, Mapping[str, Table]]

LARGE = 2**24
"""Bytes of a file from which it is converted."""


def read_tables(path: str | os.PathLike[str]) -> Tables:
    """Returns the tables of a file by search space and dataset, in its order; they must not be modified.

    Raises `DataError` for a file that is missing, empty, truncated, not JSON or without the objects, with a key that
    occurs twice, and for a large one whose tables are not numbers.
    """
    return _read(Path(path), stamp(path))


def read_objects(path: str | os.PathLike[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the content of a file `{space: {dataset: {..}}}`, with X and y as arrays. Raises as `read_tables`."""
    path = Path(path)
    content: dict[str, Any] = read_json(path, _as_arrays)
    _check_object(content, str(path))
    for space, datasets in content.items():
        _check_object(datasets, location(path, space))
        for name, value in datasets.items():
            _check_object(value, location(path, space, name))
    return content


@lru_cache(maxsize=4)
def _read(path: Path, source: tuple[int, ...] | None) -> Tables:
    if source is None or source[-1] <= LARGE:
        return read_objects(path)
    converted = path.with_name(f".{path.name}.npz")
    tables = _open_converted(converted, source)
    if tables is None:
        content = read_objects(path)
        for space, datasets in content.items():
            for name, value in datasets.items():
                checks.table(value, location(path, space, name))
        with contextlib.suppress(DataError):
            _convert(converted, source, content)
        tables = _open_converted(converted, source) or content  # so that one search space is in memory at a time
    return tables


def _convert(path: Path, source: tuple[int, ...], content: Tables) -> None:
    tables = [table for datasets in content.values() for table in datasets.values()]
    arrays = {f"{name}{i}": table[name] for i, table in enumerate(tables) for name in ("X", "y")}
    index = json.dumps({"source": source, "spaces": {space: [*datasets] for space, datasets in content.items()}})
    with atomic_writer(path) as stream:
        np.savez(stream, index=np.array(index), **arrays)


def _open_converted(path: Path, source: tuple[int, ...]) -> Tables | None:
    """Returns the tables of a converted file; None if there is none of this source."""
    if not zipfile.is_zipfile(path):
        return None
    arrays = np.load(path)
    index = json.loads(str(arrays["index"]))
    if index["source"] != [*source]:
        return None
    names = [(space, name) for space, datasets in index["spaces"].items() for name in datasets]
    places = {space: dict[str, int]() for space in index["spaces"]}
    for i, (space, name) in enumerate(names):
        places[space][name] = i
    return {space: _ConvertedTables(arrays, numbers) for space, numbers in places.items()}


class _ConvertedTables(Mapping[str, Table]):
    """The tables of a search space; each is read at its access."""

    def __init__(self, arrays: Mapping[str, Any], numbers: dict[str, int]) -> None:
        self._arrays, self._numbers = arrays, numbers

    def __getitem__(self, name: str) -> Table:
        return {key: self._arrays[f"{key}{self._numbers[name]}"] for key in ("X", "y")}

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _as_arrays(value: dict[str, Any]) -> dict[str, Any]:
    """Replaces X and y by arrays while a file is parsed, as lists of numbers would take four times the memory."""
    if value.keys() == {"X", "y"}:
        arrays = {key: checks.numbers(rows) if isinstance(rows, list) else None for key, rows in value.items()}
        value.update({key: array for key, array in arrays.items() if array is not None})
    return value


def _check_object(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object must follow, but got {checks.show(value)}")
