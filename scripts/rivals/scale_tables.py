"""Tables of trainings whose tasks have features: one CSV file, and the tasks that are new with their past."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from dre_jax.data.features import infer_type
from dre_jax.errors import DataError
from dre_jax.tuning import Categorical, Float, Linear, Log, Past, Space, from_frame
from rivals.formulas import evaluate
from rivals.problems import Table

PROTOCOLS = ("leave-one-out", "small-to-large")


@dataclass(frozen=True)
class Columns:
    """What the columns of a file are."""

    task: Sequence[str]
    """Those that name a task together."""
    features: Sequence[str]
    """Numbers, constant within a task."""
    parameters: Sequence[str]
    """Hyperparameters: numbers, or texts, which are choices. If there are none, all columns of no other kind are."""
    log: Sequence[str] | None
    """Hyperparameters and features on a log scale, which are numbers; None for those that `infer_type` says."""
    value: str
    direction: str


@dataclass(frozen=True, eq=False)
class ScaleTables:
    """Tasks of one search space with features. Values are maximised."""

    columns: Columns
    """Those of the file, with all hyperparameters."""
    log: Sequence[str]
    """Hyperparameters and features on a log scale."""
    frame: pd.DataFrame
    """The columns ``task``, ``value``, features and hyperparameters, a row for each configuration of a task."""

    @cached_property
    def space(self) -> Space:
        """The search space, with the range or the choices of all tasks."""
        return Space({name: self._parameter(name) for name in self.columns.parameters})

    def _parameter(self, name: str) -> Float | Categorical:
        column = self.frame[name]
        if is_numeric_dtype(column):
            return Float(float(column.min()), float(column.max()), log=name in self.log)
        return Categorical(tuple(sorted(column.unique())))

    @cached_property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return list(dict.fromkeys(self.frame["task"]))

    def features(self, task: str) -> dict[str, float]:
        """Returns the features of a task."""
        row = self.frame[self.frame["task"] == task].iloc[0]
        return {name: float(row[name]) for name in self.columns.features}

    def standardised_features(self, past: Sequence[str], task: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns features f64[T, P] of past tasks and f64[P] of a new task, by mean and deviation of the past tasks.

        Those on a log scale are logarithms. A feature that the past tasks do not vary is 0.
        """
        rows = [self.features(name) for name in (*past, task)]
        scales = [np.log if name in self.log else np.asarray for name in self.columns.features]
        z = np.array([[scale(row[name]) for name, scale in zip(row, scales, strict=True)] for row in rows])
        deviation = z[:-1].std(axis=0)
        z = np.where(deviation > 0.0, (z - z[:-1].mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0), 0.0)
        return z[:-1], z[-1]

    def table(self, task: str) -> Table:
        """Returns the configurations of a task with their values."""
        part = self.frame[self.frame["task"] == task]
        rows = part[list(self.columns.parameters)].to_dict("records")
        return Table(self.space, rows, part["value"].to_numpy(np.float64))

    def past(self, tasks: Sequence[str], *, features: bool) -> Past:
        """Returns tasks as past tasks, with or without their features."""
        names = list(self.columns.features) if features else []
        types = {name: Log() if name in self.log else Linear() for name in names}
        part = self.frame[self.frame["task"].isin(tasks)]
        return from_frame(part, self.space, direction="maximize", features=names, feature_types=types)

    def splits(self, protocol: str, size: str, n_tasks: int) -> Iterator[tuple[str, list[str]]]:
        """Yields new tasks with their past tasks, at most so many, spread evenly over the sizes.

        Args:
          protocol: "leave-one-out": all others are the past; "small-to-large": the largest third is new.
          size: an expression in the features.
          n_tasks: maximum number of new tasks.
        """
        by_size = sorted(self.tasks, key=lambda task: evaluate(size, self.features(task)))
        n_new = max(1, len(by_size) // 3) if protocol == "small-to-large" else len(by_size)
        new = by_size[-n_new:]
        for i in np.linspace(0, n_new - 1, min(n_tasks, n_new)).round().astype(int):
            others = by_size[:-n_new] if protocol == "small-to-large" else [each for each in by_size if each != new[i]]
            yield new[i], others


def read_tables(path: Path, columns: Columns) -> ScaleTables:
    """Returns the tasks of a CSV file; of trainings of the same configuration, the best. Those that diverged are out.

    Raises:
      DataError: for columns that are missing, cells that are empty, texts of features or on a log scale, and features
        that are not constant within a task.
    """
    table = pd.read_csv(path)
    others = {*columns.task, *columns.features, columns.value}
    columns = replace(columns, parameters=columns.parameters or [name for name in table if name not in others])
    names = [*columns.features, *columns.parameters]
    if missing := [name for name in (*columns.task, *names, columns.value) if name not in table]:
        raise DataError(f"{path} has no column {missing[0]!r}")
    log = _on_log_scale(table[names]) if columns.log is None else columns.log
    choices = [name for name in columns.parameters if name not in log and not is_numeric_dtype(table[name])]
    frame = pd.DataFrame({name: table[name] if name in choices else _numbers(path, table, name) for name in names})
    frame.insert(0, "task", table[list(columns.task)].astype(str).agg(" ".join, axis=1))
    frame["value"] = _numbers(path, table, columns.value) * (1.0 if columns.direction == "maximize" else -1.0)
    frame = frame[np.isfinite(frame["value"])]
    unknown = frame[names].isna() | frame[names].isin([np.inf, -np.inf])
    if empty := [name for name in names if unknown[name].any()]:
        raise DataError(f"{path}: each training must have a finite value of {empty[0]!r}")
    for name in columns.features:
        if (frame.groupby("task")[name].nunique() != 1).any():
            raise DataError(f"{path}: a feature must be constant within a task, but {name!r} is not")
    return ScaleTables(columns, log, frame.groupby(["task", *names], sort=False, as_index=False)["value"].max())


def _on_log_scale(table: pd.DataFrame) -> list[str]:
    """Returns the names of the columns of numbers whose ratios matter."""
    numbers = table.select_dtypes("number")
    return [
        name
        for name, column in numbers.items()
        if infer_type(str(name), dict(zip(map(str, column.index), column, strict=True))) == Log()
    ]


def _numbers(path: Path, table: pd.DataFrame, name: str) -> pd.Series:
    try:
        return table[name].astype(float)
    except ValueError as error:
        raise DataError(f"{path}: {name!r} must be a number: {error}") from None


def parse_formula(texts: Sequence[str], parameters: Sequence[str]) -> Mapping[str, str]:
    """Returns expressions by hyperparameter, from texts such as ``lr=0.1*N**-0.5``.

    Raises `DataError` if they are not one for each hyperparameter.
    """
    formula = {name.strip(): text for name, _, text in (each.partition("=") for each in texts)}
    if sorted(formula) != sorted(parameters) or len(texts) != len(formula):
        raise DataError(f"a formula must have one expression for each of {', '.join(parameters)}, but has {texts}")
    return formula
