"""Result files in HPO-B's format: `{space: {dataset: {seed: [T + 1 incumbents]}}}`.

Entry 0 is the best response of the initial design, entry t the best after t trials, normalised to [0, 1] and maximised.
A file may hold an object on its origin under the key `"_meta"`.
"""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.data.checks import is_number, show
from dre_jax.data.files import location, read_json, write_json
from dre_jax.errors import DataError, DataWarning

Trace = npt.NDArray[np.float64]
Traces = Mapping[str, Mapping[str, Mapping[str, Trace]]]

META = "_meta"
# Incumbents are ratios of differences: rounding may carry them past 0 and 1.
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Results:
    """Results of one method: space -> dataset -> seed -> float64 (T + 1,) incumbents, and their origin."""

    traces: Traces = field(default_factory=dict)
    """Incumbents f64[T + 1] by search space, dataset and seed."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Origin of the results: method, protocol, settings, versions."""

    def runs(self) -> Iterator[tuple[str, str, str, Trace]]:
        """Every run as `(space, dataset, seed, incumbents)`."""
        for space, datasets in self.traces.items():
            for dataset, seeds in datasets.items():
                for seed, trace in seeds.items():
                    yield space, dataset, seed, trace


def read_results(path: str | os.PathLike[str]) -> Results:
    """A result file, plain or gzip.

    Raises `DataError` for a file that cannot be read or has another layout, and for incumbents that are not finite, not
    in [0, 1] or decreasing; the message names the run. Two defects of published files are let through, each with one
    `DataWarning`: a fall from entry 0 to entry 1 (13 runs of HPO-B's own GP), and runs that are NaN throughout (0/0 on
    a task with a constant response), which are left out.
    """
    path = Path(path)
    content = dict(_object(read_json(path), str(path)))
    meta = _object(content.pop(META, {}), f"{path}: {META}")
    traces: dict[str, dict[str, dict[str, Trace]]] = {}
    empty, falling = [], []
    for space, dataset, seed, value in _entries(path, content):
        where = f"{location(path, space, dataset)}, seed {seed!r}"
        trace = _numbers(value, where)
        if np.isnan(trace).all():
            empty.append(where)
            continue
        # Entry 1 alone may lie below entry 0, so the order is checked from there on.
        check_trace(trace, where, first=1)
        if trace.size > 1 and trace[1] < trace[0]:
            falling.append(where)
        traces.setdefault(space, {}).setdefault(dataset, {})[seed] = trace
    _warn(empty, "NaN throughout and left out")
    _warn(falling, "better before the first trial than after it")
    return Results(traces, meta)


def write_results(path: str | os.PathLike[str], results: Results) -> None:
    """Writes results to a file, `path`, at once or not at all.

    Raises `DataError` when it cannot be written and for incumbents that are not finite, not in [0, 1] or decreasing.

    >>> import tempfile
    >>> results = add_trace(Results(), "svm", "wine", "test0", [0.5, 0.5, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_results(f"{folder}/DRE.json", results)
    ...     read_results(f"{folder}/DRE.json").traces["svm"]["wine"]["test0"]
    array([0.5, 0.5, 1. ])
    """
    content: dict[str, Any] = {META: dict(results.meta)} if results.meta else {}
    for space, dataset, seed, trace in results.runs():
        where = f"{location(Path(path), space, dataset)}, seed {seed!r}"
        _check_name(space, where)
        check_trace(trace, where)
        content.setdefault(space, {}).setdefault(dataset, {})[seed] = trace.tolist()
    write_json(path, content)


def add_trace(results: Results, space: str, dataset: str, seed: str, trace: npt.ArrayLike) -> Results:
    """Returns the results with one more run; the argument is not changed.

    Args:
      results: the runs so far.
      space: search space.
      dataset: task.
      seed: initial design.
      trace: [T + 1] incumbents.

    Raises `DataError` when the run is already there, or its incumbents are not finite, in [0, 1] and non-decreasing.

    >>> lengths(add_trace(Results(), "svm", "wine", "test0", [0.5, 1.0]))
    {2: 1}
    """
    where = f"space {space!r}, dataset {dataset!r}, seed {seed!r}"
    _check_name(space, where)
    datasets = results.traces.get(space, {})
    seeds = datasets.get(dataset, {})
    if seed in seeds:
        raise DataError(f"{where}: a run must be added once, but it is already there")
    values = np.array(trace, dtype=np.float64)
    check_trace(values, where)
    traces = {**results.traces, space: {**datasets, dataset: {**seeds, seed: values}}}
    return Results(traces, results.meta)


def lengths(results: Results) -> dict[int, int]:
    """Number of runs by number of incumbents (T + 1), shortest first; one entry when all are of one length."""
    return dict(sorted(Counter(len(trace) for *_, trace in results.runs()).items()))


def check_trace(trace: Trace, where: str, *, first: int = 0) -> None:
    """Checks that incumbents (T + 1,) are finite, in [0, 1] up to 1e-9, and from entry `first` on never decrease.

    Raises `DataError`, the message starting with `where`.
    """
    if trace.ndim != 1 or not trace.size:
        raise DataError(f"{where}: a run must be a list of at least one incumbent, but has shape {trace.shape}")
    _refuse(~np.isfinite(trace), trace, where, "incumbents must be finite")
    _refuse(np.abs(trace - 0.5) > 0.5 + _TOLERANCE, trace, where, "incumbents must lie in [0, 1]")
    fell = np.zeros(trace.shape, np.bool_)
    fell[first + 1 :] = trace[first + 1 :] < trace[first:-1]
    _refuse(fell, trace, where, "incumbents must not decrease")


def _check_name(space: str, where: str) -> None:
    if space == META:
        raise DataError(f"{where}: a space must not be called {META!r}, which holds what describes the file")


def _refuse(wrong: npt.NDArray[np.bool_], trace: Trace, where: str, rule: str) -> None:
    if wrong.any():
        entry = int(np.argmax(wrong))
        after = f" after {trace[entry - 1]}" if "decrease" in rule else ""
        raise DataError(f"{where}: {rule}, but entry {entry} is {trace[entry]}{after}")


def _entries(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for space, datasets in content.items():
        for dataset, seeds in _object(datasets, location(path, space)).items():
            for seed, value in _object(seeds, location(path, space, dataset)).items():
                yield space, dataset, seed, value


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        rule = "results must be {space: {dataset: {seed: [incumbents]}}}"
        raise DataError(f"{where}: {rule}, but got {type(value).__name__}")
    return value


def _numbers(value: Any, where: str) -> Trace:
    if not isinstance(value, list) or not value:
        raise DataError(f"{where}: a run must be a list of at least one incumbent, but got {show(value)}")
    for entry, number in enumerate(value):
        if not is_number(number):
            raise DataError(f"{where}: incumbents must be numbers, but entry {entry} is {show(number)}")
    return np.array(value, dtype=np.float64)


def _warn(locations: list[str], what: str) -> None:
    if locations:
        warnings.warn(f"{locations[0]}: {what} ({len(locations)} such runs in this file)", DataWarning, stacklevel=3)
