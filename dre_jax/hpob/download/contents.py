"""Required content of a folder of HPO-B's tables or of its surrogates, read once in bounded memory."""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dre_jax.data import checks
from dre_jax.data.files import find_json, place, read_json
from dre_jax.data.json_stream import iter_everything
from dre_jax.errors import DataError, DataWarning
from dre_jax.hpob.download.fetch import Silent, Watch

__all__ = ["HPO_B", "Expected", "check_surrogates", "check_tables", "surrogate_names"]

STATISTICS = "summary-stats"
_TEST, _VALIDATION, _TRAIN = (f"meta-{split}-dataset" for split in ("test", "validation", "train"))
AUGMENTED, DESIGNS = f"{_TRAIN}-augmented", "bo-initializations"
# A surrogate's name becomes a file's name, so nothing else may be in it.
_SURROGATE = re.compile(r"surrogate-(\w[\w.]*)-(\w[\w.]*)")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How much there must be; by default what HPO-B v3 holds."""

    spaces: int = 16
    test_tasks: int = 86
    designs: int = 5
    design_rows: int = 5


HPO_B = Expected()


@dataclass
class _Tables:
    """The content of one file."""

    tasks: int = 0
    rows: int = 0
    columns: dict[str, int] = field(default_factory=dict)  # by search space


def check_tables(folder: Path, expected: Expected = HPO_B, watch: Watch | None = None) -> str:
    """Reads all of HPO-B v3's files, the larger training file too if it is there, and says what they hold.

    Raises:
      DataError: for a file that is missing or malformed, tables with other than finite numbers, search spaces or
        columns that differ between the files, and for less or more than is expected: search spaces, tasks of the test
        split, designs of each and rows of a design.
    """
    watch = watch or Silent()
    paths = {stem: find_json(folder, stem) for stem in (_TEST, _VALIDATION, _TRAIN)}
    designs = read_json(find_json(folder, DESIGNS))
    with contextlib.suppress(DataError):  # only two of HPO-B's modes need it
        paths[AUGMENTED] = find_json(folder, AUGMENTED)
    found: dict[str, _Tables] = {}
    for stem, path in paths.items():
        found[stem] = _read(path, designs if stem == _TEST else None, expected, watch)
        if stem == _TEST:  # the smaller file tells first
            _check_counts(folder, found[stem], expected)
        _check_spaces(path, found[stem], found[_TEST], paths[_TEST], same_spaces=stem != AUGMENTED)
    tasks = " / ".join(f"{found[stem].tasks}" for stem in (_TRAIN, _VALIDATION, _TEST))
    rows = sum(found[stem].rows for stem in (_TRAIN, _VALIDATION, _TEST))
    return (
        f"{len(found[_TEST].columns)} search spaces, {tasks} tasks for training / validation / test, "
        f"{rows:,} evaluations, {expected.designs} initial designs"
    )


def _read(path: Path, designs: Any, expected: Expected, watch: Watch) -> _Tables:
    found, size = _Tables(), path.stat().st_size
    for space, dataset, value, end in iter_everything(path):
        where = place(path, space, dataset)
        x, _ = checks.table(value, where)
        columns = found.columns.setdefault(space, x.shape[1])
        if x.shape[1] != columns:
            raise DataError(
                f"{where}: X must have {columns} columns like the space's other tasks, but has {x.shape[1]}"
            )
        if designs is not None:
            _check_designs(designs, space, dataset, len(x), expected)
        found.tasks += 1
        found.rows += len(x)
        watch.progress(f"check {path.name}", min(end, size), size)
    return found


def _check_designs(designs: Any, space: str, dataset: str, n_rows: int, expected: Expected) -> None:
    where = f"{DESIGNS}: space {space!r}, dataset {dataset!r}"
    seeds = designs.get(space, {}) if isinstance(designs, dict) else {}
    seeds = seeds.get(dataset, {}) if isinstance(seeds, dict) else {}
    if not isinstance(seeds, dict) or len(seeds) != expected.designs:
        given = len(seeds) if isinstance(seeds, dict) else checks.show(seeds)
        raise DataError(f"{where}: a test task must have {expected.designs} initial designs, but has {given}")
    for seed, rows in seeds.items():
        n = len(checks.design_rows(rows, n_rows, f"{where}, seed {seed!r}"))
        if n < expected.design_rows:
            raise DataError(f"{where}, seed {seed!r}: a design must have {expected.design_rows} rows, but has {n}")


def _check_counts(folder: Path, test: _Tables, expected: Expected) -> None:
    if (len(test.columns), test.tasks) != (expected.spaces, expected.test_tasks):
        raise DataError(
            f"{folder}: HPO-B must hold {expected.spaces} search spaces and {expected.test_tasks} test tasks, "
            f"but there are {len(test.columns)} and {test.tasks}"
        )


def _check_spaces(path: Path, found: _Tables, test: _Tables, test_path: Path, *, same_spaces: bool) -> None:
    if same_spaces and (differing := sorted(set(found.columns) ^ set(test.columns))):
        raise DataError(f"{path}: must hold the search spaces of {test_path.name}, but they differ in {differing[:5]}")
    for space, columns in found.columns.items():
        if columns != test.columns.get(space, columns):
            raise DataError(
                f"{place(path, space)}: X must have {test.columns[space]} columns as in {test_path.name}, "
                f"but has {columns}"
            )


def surrogate_names(folder: Path) -> list[str]:
    """The surrogates that `summary-stats.json` names, as the stems of their files.

    Raises `DataError` when it is missing, is no object of statistics, or a name is not `surrogate-<space>-<dataset>`.
    """
    path = folder / f"{STATISTICS}.json"
    statistics = read_json(path)
    if not isinstance(statistics, dict) or not statistics:
        raise DataError(f"{path}: must be an object {{surrogate: statistics}}, but got {checks.show(statistics)}")
    for name, values in statistics.items():
        if not _SURROGATE.fullmatch(name):
            raise DataError(f"{path}: a name must be surrogate-<space>-<dataset>, but got {checks.show(name)}")
        ends: list[Any] = [values.get(end) for end in ("y_min", "y_max")] if isinstance(values, dict) else [None]
        if not all(checks.is_number(end) and math.isfinite(end) for end in ends) or ends != sorted(ends):
            raise DataError(f"{path}: {name} must have finite y_min <= y_max, but got {checks.show(values)}")
    return list(statistics)


def check_surrogates(folder: Path, expected: Expected = HPO_B, watch: Watch | None = None) -> str:
    """Reads the statistics and every surrogate that they name, one at a time, and says what there is.

    A named surrogate without a file is warned of (`DataWarning`), as most belong to tasks that are not tested on.

    Raises:
      DataError: for statistics or a model that cannot be read, and for less than is expected: as many surrogates as
        there are test tasks, from as many search spaces.
    """
    watch = watch or Silent()
    names = surrogate_names(folder)
    there = [name for name in names if (folder / f"{name}.json").is_file()]
    done, total = 0, sum((folder / f"{name}.json").stat().st_size for name in there)
    for name in there:
        path = folder / f"{name}.json"
        model = read_json(path)
        if not isinstance(model, dict) or "learner" not in model:
            raise DataError(f"{path}: must be an XGBoost model, an object with 'learner', but got {checks.show(model)}")
        done += path.stat().st_size
        watch.progress("check surrogates", done, total)
    spaces = {match[1] for name in there if (match := _SURROGATE.fullmatch(name))}
    if len(spaces) < expected.spaces or len(there) < expected.test_tasks:
        raise DataError(
            f"{folder}: HPO-B must have surrogates of at least {expected.test_tasks} tasks "
            f"in {expected.spaces} search spaces, but there are {len(there)} in {len(spaces)}"
        )
    if missing := [name for name in names if name not in set(there)]:
        text = f"{folder}: {len(missing)} surrogates have statistics but no file, {missing[0]} the first"
        warnings.warn(text, DataWarning, stacklevel=2)
    return f"surrogates of {len(there)} tasks in {len(spaces)} search spaces"
