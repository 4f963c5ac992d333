"""HPO-B's files: one search space in, the outline of a folder, whole folders out.

A folder holds `meta-train-dataset`, `meta-validation-dataset` and `meta-test-dataset`, each
`{space: {dataset: {"X": [[..]], "y": [[..]]}}}` with the response to be maximised, and `bo-initializations`,
`{space: {dataset: {seed: [row numbers]}}}`; `.json` or `.json.gz` (Pineda Arango et al., HPO-B, NeurIPS 2021 Datasets
and Benchmarks, https://github.com/machinelearningnuremberg/HPO-B).
"""

import json
import os
import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dre_jax.checks import one_of
from dre_jax.data import checks
from dre_jax.data.columns import DESCRIPTORS, Column, columns_of, read_descriptor
from dre_jax.data.files import atomic_writer, find_json, location, make_folder
from dre_jax.data.raw_columns import COLUMNS, fix_columns
from dre_jax.data.spaces import SPLITS, Designs, SearchSpace, Task
from dre_jax.data.table_files import read_objects, read_tables
from dre_jax.errors import ConfigError, DataError, DataWarning

DESIGNS = "bo-initializations"
_TRAIN, _VALIDATION, _TEST = (f"meta-{split}-dataset" for split in SPLITS)
_TRAIN_AUGMENTED = f"{_TRAIN}-augmented"
_Files = dict[str, tuple[str, ...]]
_V3: _Files = {"train": (_TRAIN,), "validation": (_VALIDATION,), "test": (_TEST,)}
# The files of each split. The first file decides which search spaces exist. If several files have a dataset, the last
# one counts.
_FILES: dict[str, _Files] = {
    "v1": {"train": (), "validation": (), "test": (_TRAIN_AUGMENTED, _TEST, _VALIDATION)},
    "v2": {"train": (), "validation": (), "test": (_TRAIN, _TEST, _VALIDATION)},
    "v3": _V3,
    "v3-test": {"test": (_TEST,)},
    "v3-train-augmented": _V3 | {"train": (_TRAIN_AUGMENTED,)},
}
MODES = tuple(_FILES)
# A min-max scaling done in another precision may leave the unit cube by a rounding error.
_UNIT_TOLERANCE = 1e-6
_NAMES_SHOWN = 20


def list_spaces(folder: str | os.PathLike[str], mode: str = "v3") -> list[str]:
    """The search spaces that `load_space` can load in this mode, in the files' order.

    v1 and v2 have only the spaces of the training file, as in HPO-B. Other modes have those of any of their files.
    Raises `ConfigError` for an unknown mode, and `DataError` for a folder or a file that cannot be read.

    >>> from dre_jax.data import bundled
    >>> list_spaces(bundled.path())[:2]
    ['svm', 'random-forest']
    """
    paths = [find_json(folder, stems[0]) for stems in files_of(mode).values() if stems]
    return list(dict.fromkeys(space for path in paths for space in read_tables(path)))


def load_space(
    folder: str | os.PathLike[str],
    space: str,
    mode: str = "v3",
    *,
    splits: Collection[str] | None = None,
    columns: str = "published",
) -> SearchSpace:
    """One search space; the others in the files are skipped.

    Modes are HPO-B's: `v3` (three splits), `v3-test` (the test split only), `v3-train-augmented` (the larger training
    file), `v2` (all of v3 merged into the test split) and `v1` (the same with the larger training file). A space that
    a file lacks has an empty split. `v3-test` leaves out the designs of the other splits' datasets.
    `splits` names those that are wanted: the files of the others are not opened, and their splits are empty (the
    training file is by far the largest, and only what learns from past tasks needs it).
    `columns="fixed"` corrects the columns that HPO-B left on a raw scale, see `dre_jax.data.raw_columns`.

    Raises `ConfigError` for an unknown mode, and `DataError` for files that are missing or malformed, an unknown space,
    a column count that differs inside the space, tables with other than finite numbers, and designs that do not fit
    their table; the message names file, space, dataset and row. Warns with `DataWarning` of constant responses and of
    values outside [0, 1].

    >>> import tempfile
    >>> import numpy as np
    >>> task = Task("wine", X=np.array([[0.0], [1.0]], np.float32), y=np.array([0.1, 0.9]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_dataset(folder, [SearchSpace("svm", train={"wine": task})])
    ...     load_space(folder, "svm").train["wine"].n_rows
    2
    """
    one_of("columns", columns, COLUMNS)
    paths = {split: [find_json(folder, stem) for stem in stems] for split, stems in files_of(mode, splits).items()}
    designs_path = find_json(folder, DESIGNS)
    read = {path: _read_tasks(path, space) for files in paths.values() for path in files}
    is_known = any(read[files[0]] for files in paths.values() if files)
    if not is_known and space not in (available := list_spaces(folder, mode)):  # which reads the files again
        raise DataError(f"{folder}: unknown space {space!r}; mode {mode} knows {_names(available)}")
    if not any(read.values()):
        raise DataError(f"{folder}: space {space!r} must hold at least one task, but it has none")
    _check_columns(space, paths, read)
    by_split = {split: {n: task for path in files for n, task in read[path].items()} for split, files in paths.items()}
    tables = {name: task for tasks in by_split.values() for name, task in tasks.items()}
    designs = _read_designs(designs_path, space, tables, complete=len(read) == len(SPLITS))
    schema = read_columns(folder, space, next(iter(tables.values())).n_columns)
    result = SearchSpace(space, **by_split, designs=designs, columns=schema)
    _warn(result)
    return fix_columns(folder, result) if columns == "fixed" else result


def write_dataset(folder: str | os.PathLike[str], spaces: Iterable[SearchSpace]) -> None:
    """Writes the four v3 files, each at once or not at all, into `folder`, which is created if need be.

    Reading gives back equal arrays. Raises `DataError` when two spaces share a name, or a file cannot be written.
    """
    spaces = list(spaces)
    if len({space.name for space in spaces}) < len(spaces):
        raise DataError(f"every space must have its own name, but got {_names([space.name for space in spaces])}")
    folder = Path(folder)
    make_folder(folder)
    for split, (stem,) in _V3.items():
        _write(folder / f"{stem}.json", {space.name: space.split(split) for space in spaces})
    _write(folder / f"{DESIGNS}.json", {space.name: space.designs for space in spaces})


def files_of(mode: str, splits: Collection[str] | None = None) -> _Files:
    """The files, without their endings, that feed each of the wanted splits in a mode.

    Raises `ConfigError` for an unknown mode or split, or one that the mode does not read.

    >>> files_of("v3", ["test"])
    {'test': ('meta-test-dataset',)}
    """
    one_of("the mode", mode, MODES)
    files = _FILES[mode]
    if splits is None:
        return files
    for split in splits:
        if split not in files:
            raise ConfigError(f"the split must be one of {', '.join(files)} in mode {mode}, but got {split!r}")
    return {split: stem for split, stem in files.items() if split in splits}


def read_columns(folder: str | os.PathLike[str], space: str, n_columns: int) -> tuple[Column, ...] | None:
    """Descriptions of the columns of a search space, where the folder has them.

    Raises `DataError` for a descriptor that cannot be read, or that lists another number of columns.
    """
    descriptor = read_descriptor(folder, space)
    if descriptor is None:
        return None
    columns = columns_of(descriptor)
    if len(columns) != n_columns:
        where = location(Path(folder) / f"{DESCRIPTORS}.json", space)
        raise DataError(
            f"{where}: a descriptor must list the {n_columns} columns of the tables, but lists {len(columns)}"
        )
    return columns


def _read_tasks(path: Path, space: str) -> dict[str, Task]:
    tables = read_tables(path).get(space, {})
    return {name: Task(name, *checks.table(value, location(path, space, name))) for name, value in tables.items()}


def _check_columns(space: str, paths: dict[str, list[Path]], tasks: dict[Path, dict[str, Task]]) -> None:
    everything = [(split, path, task) for split in paths for path in paths[split] for task in tasks[path].values()]
    first_split, _, first = everything[0]
    for _, path, task in everything:
        if task.n_columns != first.n_columns:
            where = location(path, space, task.name)
            like = f"{first.n_columns} like dataset {first.name!r} of the {first_split} split"
            raise DataError(
                f"{where}: X must have as many columns in the whole space, {like}, but has {task.n_columns}"
            )


def _read_designs(path: Path, space: str, tables: dict[str, Task], *, complete: bool) -> Designs:
    designs: Designs = {}
    for name, seeds in read_objects(path).get(space, {}).items():
        where = location(path, space, name)
        if name in tables:
            n_rows = tables[name].n_rows
            designs[name] = {s: checks.design_rows(rows, n_rows, f"{where}, seed {s!r}") for s, rows in seeds.items()}
        elif complete:
            raise DataError(f"{where}: an initial design must belong to a dataset of a split, but none has this name")
    return designs


def _warn(space: SearchSpace) -> None:
    constant = [f"{split}/{task.name}" for split, task in space.tasks() if task.y.min() == task.y.max()]
    if constant:
        message = f"space {space.name!r}: the response is constant in {_names(constant)}; nothing can be ranked there"
        warnings.warn(message, DataWarning, stacklevel=3)
    for split, task in space.tasks():
        low, high = float(task.X.min()), float(task.X.max())
        if low < -_UNIT_TOLERANCE or high > 1 + _UNIT_TOLERANCE:
            spans = f"dataset {task.name!r} of the {split} split spans [{low:g}, {high:g}]"
            warnings.warn(f"space {space.name!r}: X should lie in [0, 1], but {spans}", DataWarning, stacklevel=3)
            return


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more if names else "none"


def _write(path: Path, content: Mapping[str, Mapping[str, Any]]) -> None:
    with atomic_writer(path) as stream:
        stream.write(b"{")
        for index, (name, datasets) in enumerate(content.items()):
            stream.write(f"{',' if index else ''}{json.dumps(name)}:{{".encode())
            _write_datasets(stream, datasets, location(path, name))
            stream.write(b"}")
        stream.write(b"}\n")


def _write_datasets(stream: BinaryIO, datasets: Mapping[str, Any], where: str) -> None:
    # One dataset's text at a time: a whole training file would not fit beside its arrays.
    for index, (name, value) in enumerate(datasets.items()):
        if isinstance(value, Task):
            plain = {"X": value.X.tolist(), "y": value.y[:, None].tolist()}
        else:
            plain = {seed: rows.tolist() for seed, rows in value.items()}
        try:
            text = json.dumps(plain, separators=(",", ":"), allow_nan=False)
        except ValueError as error:
            raise DataError(f"{where}, dataset {name!r}: X and y must be finite, but hold NaN or infinity") from error
        stream.write(f"{',' if index else ''}{json.dumps(name)}:{text}".encode())


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

    Only the first table of each space is checked. `load_space` checks the others, and the rows of the designs.

    Raises `ConfigError` for an unknown mode or split, and `DataError` for files that are missing or malformed.

    >>> from dre_jax.data import bundled
    >>> outline(bundled.path(), "test")["svm"].n_columns
    14
    """
    datasets: dict[str, dict[str, None]] = {}
    columns: dict[str, int] = {}
    for number, stem in enumerate(files_of(mode, [split])[split]):
        path = find_json(folder, stem)
        for space, tables in read_tables(path).items():
            if not tables or (number and space not in datasets):
                continue
            datasets.setdefault(space, {}).update(dict.fromkeys(tables))
            if space not in columns:
                first = next(iter(tables))
                columns[space] = checks.table(tables[first], location(path, space, first))[0].shape[1]
    designs = read_objects(find_json(folder, DESIGNS))
    return {
        space: Outline(
            space,
            columns[space],
            tuple(names),
            {n: tuple(designs.get(space, {}).get(n, ())) for n in names},
            read_columns(folder, space, columns[space]),
        )
        for space, names in datasets.items()
    }
