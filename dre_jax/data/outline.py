"""The content of a folder, without its tables: search spaces, their datasets, columns and initial designs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from dre_jax.data import checks
from dre_jax.data.columns import Column
from dre_jax.data.files import find_json, place, read_json
from dre_jax.data.hpob import DESIGNS, MERGED, files_of, read_columns
from dre_jax.data.json_stream import iter_everything
from dre_jax.errors import DataError

__all__ = ["Outline", "outline"]


class Outline(NamedTuple):
    """A search space of one split."""

    name: str
    n_columns: int
    """D, of the first dataset."""
    datasets: tuple[str, ...]
    """In the file's order."""
    seeds: Mapping[str, tuple[str, ...]]
    """The names of each dataset's initial designs; none where it has no design."""
    columns: tuple[Column, ...] | None = None
    """Descriptions of the columns, where the folder has them."""


def outline(folder: str | os.PathLike[str], split: str, mode: str = "v3") -> dict[str, Outline]:
    """Every search space that has tasks in a split, in the files' order.

    One pass over the split's file, of which only the first table of each space becomes an object. The other tables and
    the designs' rows are checked later, by `load_space`.

    Raises `ConfigError` for an unknown mode or split, and `DataError` for files that are missing or malformed.

    >>> from dre_jax.data import bundled
    >>> outline(bundled.path(), "test")["svm"].n_columns
    14
    """
    stems = files_of(mode, [split])
    # The order of HPO-B's handler, see `load_space`.
    order = ("train", "test", "validation") if mode in MERGED else (split,)
    datasets: dict[str, dict[str, None]] = {}
    columns: dict[str, int] = {}
    for part in order if split == "test" or mode not in MERGED else ():
        path = find_json(folder, stems[part])
        for space, dataset, first, _ in iter_everything(path, first_only=True):
            if mode in MERGED and part != "train" and space not in datasets:
                continue
            datasets.setdefault(space, {})[dataset] = None
            if first is not None and space not in columns:
                columns[space] = checks.table(first, place(path, space, dataset))[0].shape[1]
    seeds = _seeds(folder)
    return {
        space: Outline(
            space,
            columns[space],
            tuple(names),
            {n: seeds.get(space, {}).get(n, ()) for n in names},
            read_columns(folder, space, columns[space]),
        )
        for space, names in datasets.items()
    }


def _seeds(folder: str | os.PathLike[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Space -> dataset -> the names of its designs. The file is small: row numbers only."""
    path = find_json(folder, DESIGNS)
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: initial designs must be {{space: {{dataset: {{seed: [rows]}}}}}}")
    for space, datasets in content.items():
        if not isinstance(datasets, dict) or not all(isinstance(seeds, dict) for seeds in datasets.values()):
            raise DataError(f"{place(path, space)}: initial designs must be {{dataset: {{seed: [rows]}}}}")
    return {space: {name: tuple(seeds) for name, seeds in datasets.items()} for space, datasets in content.items()}
