"""Tasks of recorded trainings: tables of configurations with their learning curves."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre_jax.data.files import read_json
from dre_jax.errors import DataError
from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Space
from rivals.budget_tasks import SHARES, STEPS, BudgetTask
from rivals.problems import Problem

_LOG_RATIO = 50.0


class _Table(NamedTuple):
    name: str
    configurations: Sequence[Mapping[str, Any]]
    curves: np.ndarray
    """f64[n, STEPS]"""


def recorded_tasks(path: Path, n_rows: int) -> Iterator[BudgetTask]:
    """Yields the task of a JSON file; of a folder those of its files, each with the others as its past.

    A file is a list of ``{"config": ..., "curve": [[step, value], ...], "diverged": ...}``. A step counts as a share of
    its own training; a training that diverged keeps its worst value. A hyperparameter that some configurations lack is
    conditional on the choice that tells which ones. Raises `DataError` for a file without two trainings.
    """
    paths = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    tables = [_read_table(file, n_rows) for file in paths]
    if not tables:
        raise DataError(f"{path} must have files of trainings, but has none")
    space = _space([config for table in tables for config in table.configurations])
    rows = {table.name: [space.check(config) for config in table.configurations] for table in tables}
    studies = {table.name: list(map(Evaluated, rows[table.name], table.curves[:, -1].tolist())) for table in tables}
    for table in tables:
        past = {name: study for name, study in studies.items() if name != table.name}
        yield _task(table, path, Problem(space, past), rows[table.name])


def _task(table: _Table, path: Path, problem: Problem, rows: Sequence[Params]) -> BudgetTask:
    curves = {_key(row): curve for row, curve in zip(rows, table.curves, strict=True)}
    family = path.name if path.is_dir() else table.name
    return BudgetTask(family, table.name, problem, lambda params: curves[_key(params)], table.curves[:, -1], rows)


def _key(params: Params) -> tuple[Any, ...]:
    return tuple(params.items())


def _read_table(path: Path, n_rows: int) -> _Table:
    trainings = [training for training in read_json(path) if training["curve"]]
    if len(trainings) < 2:
        raise DataError(f"{path} must have trainings with curves, but has {len(trainings)}")
    trainings = [trainings[i] for i in np.random.default_rng(0).permutation(len(trainings))[:n_rows]]
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return _Table(name, [training["config"] for training in trainings], np.array(list(map(_steps_of, trainings))))


def _steps_of(training: Mapping[str, Any]) -> np.ndarray:
    steps, values = np.array(training["curve"], float).T
    if training["diverged"] or len(steps) < 2:
        return np.full(STEPS, values.min())
    return np.interp(SHARES * steps[-1], steps, values)


def _space(configurations: Sequence[Mapping[str, Any]]) -> Space:
    names = dict.fromkeys(chain.from_iterable(configurations))
    columns = {name: [config[name] for config in configurations if name in config] for name in names}
    is_whole = {name: len(values) == len(configurations) for name, values in columns.items()}
    choices = [name for name in names if is_whole[name] and isinstance(columns[name][0], str)]
    return Space(
        {
            name: _parameter(columns[name], None if is_whole[name] else _condition(name, choices, configurations))
            for name in sorted(names, key=lambda name: (name not in choices, name))
        }
    )


def _condition(name: str, choices: Sequence[str], configurations: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Returns the choice and its values with which configurations have a hyperparameter."""
    for choice in choices:
        having = {config[choice] for config in configurations if name in config}
        if not any(config[choice] in having for config in configurations if name not in config):
            return {choice: sorted(having)}
    raise DataError(f"{name!r} must be in all configurations, or depend on a choice, but is missing in some")


def _parameter(values: Sequence[Any], when: dict[str, list[str]] | None) -> Float | Int | Categorical:
    if isinstance(values[0], str):
        return Categorical(tuple(sorted(set(values))), when=when)
    low, high = min(values), max(values)
    is_log = low > 0 and high / low > _LOG_RATIO
    is_whole = all(isinstance(value, int) for value in values)
    return Int(int(low), int(high), log=is_log, when=when) if is_whole else Float(low, high, log=is_log, when=when)
