"""HPO-B's files as nested dictionaries that read a search space when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dre_jax.data.files import place
from dre_jax.data.json_stream import iter_datasets, list_spaces
from dre_jax.errors import DataError

__all__ = ["LazySpaces"]

Datasets = dict[str, Any]


class LazySpaces(Mapping[str, Datasets]):
    """`{space: {dataset: ..}}` of one file, or of several laid over each other; the objects are those of the JSON.

    A search space is read and checked at the first access and then kept, so the memory is that of the spaces touched.

    Raises:
      DataError: at an access, for what is malformed. An unknown search space is a KeyError, as in a dictionary.

    Example:
      >>> from dre_jax.data import bundled
      >>> from dre_jax.data.checks import table
      >>> tables = LazySpaces([bundled.path() / "meta-test-dataset.json.gz"], table)
      >>> list(tables)[0], sorted(next(iter(tables["svm"].values())))
      ('svm', ['X', 'y'])
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], check: Callable[[Any, str], object]) -> None:
        """A view of files.

        Args:
          paths: the first decides which search spaces there are; of a dataset in several files, the last counts.
          check: called with each dataset's object and the start of a message; raises DataError.
        """
        self._paths = [Path(path) for path in paths]
        self._check = check
        self._read: dict[str, Datasets] = {}

    def __getitem__(self, space: str) -> Datasets:
        if space not in self._read:
            if space not in self._names:
                raise KeyError(space)
            self._read[space] = {name: value for path in self._paths for name, value in self._datasets(path, space)}
        return self._read[space]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, space: object) -> bool:
        return space in self._names

    @cached_property
    def _names(self) -> list[str]:
        return list_spaces(self._paths[0])

    def _datasets(self, path: Path, space: str) -> Iterator[tuple[str, Any]]:
        for name, value in iter_datasets(path, space):
            self._check(value, place(path, space, name))
            yield name, value


def check_designs(value: Any, where: str) -> None:
    """Refuses an object that is no `{seed: [rows]}`; whether the rows exist, only the table says."""
    for seed, rows in value.items():
        if not isinstance(rows, list) or not rows or not all(isinstance(row, int) for row in rows):
            raise DataError(f"{where}, seed {seed!r}: an initial design must be a list of row numbers")
