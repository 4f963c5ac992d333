"""A file of finished searches, one line each, from which an interrupted call continues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre_jax.data.files import append_text, check_target, make_folder, read_text, write_text
from dre_jax.errors import DataError


class FinishedSearch(NamedTuple):
    """A search that ended."""

    points: np.ndarray
    """f64[T, P]"""
    values: np.ndarray
    """f64[T], or f64[T, M] of several objectives; NaN where a trial failed."""
    constraints: np.ndarray | None = None
    """f64[T, K], NaN where unknown; None without constraints."""
    costs: np.ndarray | None = None
    """f64[T], NaN where unknown; None without costs."""


SearchId = tuple[int, int]
"""Number of the task, and the seed."""


class SearchFile:
    """Finished searches in a file, or in memory alone without a path.

    The first line describes the searches. An incomplete line does not count.
    """

    def __init__(self, path: Path | None, origin: Mapping[str, Any]) -> None:
        """Opens the file, or begins it. Raises `DataError` if it has other searches."""
        self._path = path
        self.finished: dict[SearchId, FinishedSearch] = {}
        if path is None:
            return
        make_folder(path.parent)
        check_target(path, streams=False)
        lines = read_text(path).splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if not whole:
            write_text(path, json.dumps(origin) + "\n")
            return
        if len(whole) < len(lines):
            write_text(path, "".join(whole))
        expected, saved = json.loads(json.dumps(origin)), _read(path, whole[0])
        different = [name for name in expected if expected[name] != saved.get(name)]
        if different:
            rule = "must hold searches of this call, but differs in"
            raise DataError(f"{path} {rule} {', '.join(different)}: choose another file")
        for line in whole[1:]:
            row = _read(path, line)
            arrays = {name: row[name] for name in FinishedSearch._fields if name in row}
            search = FinishedSearch(**{name: np.array(values, np.float64) for name, values in arrays.items()})
            self.finished[row["task"], row["seed"]] = search

    def add(self, searches: Iterable[tuple[SearchId, FinishedSearch]]) -> None:
        """Adds finished searches. Raises `DataError` if the file cannot be written."""
        new = dict(searches)
        self.finished |= new
        if self._path is not None:
            rows = (
                {"task": task, "seed": seed}
                | {name: array.tolist() for name, array in search._asdict().items() if array is not None}
                for (task, seed), search in new.items()
            )
            append_text(self._path, "".join(json.dumps(row) + "\n" for row in rows))


def _read(path: Path, line: str) -> dict[str, Any]:
    try:
        return dict(json.loads(line))
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} must hold a JSON object in each line, but has {line[:60]!r}") from error
