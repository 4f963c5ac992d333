"""Learning curves of past studies, from Optuna studies and tables."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.checks import one_of
from dre_jax.data.files import read_csv
from dre_jax.errors import DataError
from dre_jax.tuning.past.optuna_studies import open_studies, unused_name
from dre_jax.tuning.trials.objectives import DIRECTIONS
from dre_jax.tuning.trials.trial import objective_value

if TYPE_CHECKING:
    from dre_jax.tuning.past.optuna_studies import Studies

Curve = Mapping[float, float]
"""Responses by step, higher is better; the last one is the final value."""
_MIN_CURVES = 3


@dataclass(frozen=True, eq=False, repr=False)
class PastCurves:
    """Learning curves of past studies of a model: how its curves continue, independently of the configurations.

    Studies with fewer than three curves, or with equal final values, are left out. Raises `DataError` for a step that
    is not a finite number from 0. Steps may have any unit.

    Example:
      >>> past = PastCurves({"a": [{1: -0.9, 2: -0.5}, {1: -0.8, 2: -0.4}, {1: -1.0, 2: -0.7}]})
      >>> len(past)
      1
    """

    tasks: Mapping[str, Sequence[Curve]] = field(default_factory=dict)
    """Responses by step, higher is better, of each trial of each past study."""
    same_kind: bool = False
    """Whether the past trainings are of the study's kind. Their ranks then count too, which stops more trials."""

    def __post_init__(self) -> None:
        for name, curves in self.tasks.items():
            wrong = next((step for curve in curves for step in curve if not 0 <= step < math.inf), None)
            if wrong is not None:
                raise DataError(f"the step of a report must be a finite number from 0, but {name!r} has {wrong!r}")
        usable = {name: [curve for curve in curves if len(curve) > 1] for name, curves in self.tasks.items()}
        last = {name: {curve[max(curve)] for curve in curves} for name, curves in usable.items()}
        tasks = {name: curves for name, curves in usable.items() if len(curves) >= _MIN_CURVES and len(last[name]) > 1}
        object.__setattr__(self, "tasks", tasks)

    def __repr__(self) -> str:
        """The studies and how many curves they have: without the numbers."""
        counts = {name: len(curves) for name, curves in self.tasks.items()}
        return f"PastCurves(n_tasks={len(counts)}, n_curves={reprlib.repr(counts)})"

    def __len__(self) -> int:
        """The number of studies."""
        return len(self.tasks)

    @classmethod
    def from_studies(cls, studies: Studies, *, same_kind: bool = False) -> PastCurves:
        """Returns the intermediate values of the complete trials of Optuna studies with one objective.

        Args:
          studies: as in `from_studies`: studies, a storage, or its address or path.
          same_kind: see `PastCurves`.

        Raises:
          DataError: if a storage cannot be read, or an argument is not a study.
          MissingExtraError: without Optuna.
        """
        tasks: dict[str, list[Curve]] = {}
        for study in open_studies(studies):
            if len(study.directions) == 1:
                sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
                tasks[unused_name(study.study_name, tasks)] = finished_curves(study.get_trials(deepcopy=False), sign)
        return cls(tasks, same_kind)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        direction: str,
        task: str = "task",
        trial: str = "trial",
        step: str = "step",
        value: str = "value",
        same_kind: bool = False,
    ) -> PastCurves:
        """Returns the curves in a table with a row for each report.

        Args:
          frame: a data frame of pandas or polars, or a mapping of names to columns.
          direction: "minimize" or "maximize".
          task: the column of task names.
          trial: the column of trials.
          step: the column of steps, numbers such as epochs.
          value: the column of values; NaN is the worst.
          same_kind: see `PastCurves`.

        Raises:
          DataError: for a column that is missing, or a step or value that is not a number.
          ConfigError: for an unknown direction.

        Example:
          >>> frame = {"task": "aaaaaa", "trial": [1, 1, 2, 2, 3, 3], "step": [1, 2] * 3, "value": [9, 5, 8, 4, 7, 6]}
          >>> PastCurves.from_frame(frame, direction="minimize").tasks["a"][0]
          {1.0: -9.0, 2.0: -5.0}
        """
        one_of("direction", direction, DIRECTIONS)
        sign = 1.0 if direction == "maximize" else -1.0
        names = list(getattr(frame, "columns", frame))
        for name in (task, trial, step, value):
            if name not in names:
                raise DataError(
                    f"a table of learning curves must have the columns task, trial, step, value, but has no {name!r}"
                )
        tasks: dict[str, dict[str, dict[float, float]]] = {}
        for of_task, of_trial, at, number in zip(
            *(list(frame[name]) for name in (task, trial, step, value)), strict=True
        ):
            reports = tasks.setdefault(str(of_task), {}).setdefault(str(of_trial), {})
            reports[_number(at, step)] = _number(number, value)
        curves = {name: [as_curve(reports, sign) for reports in trials.values()] for name, trials in tasks.items()}
        return cls(curves, same_kind)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], **columns: Any) -> PastCurves:
        """Returns the curves in a CSV file, UTF-8, plain or gzip; arguments and errors as in `from_frame`.

        Raises:
          DataError: also for a file that cannot be read.
        """
        header, *rows = [[cell.strip() for cell in cells] for _, cells in read_csv(Path(path))] or [[]]
        return cls.from_frame({name: [row[i] for row in rows] for i, name in enumerate(header)}, **columns)


def finished_curves(trials: Iterable[Any], sign: float) -> list[Curve]:
    """Returns the curves of the complete trials of an Optuna study, whose last entries are the trials' values."""
    complete = [trial for trial in trials if trial.state.name == "COMPLETE" and trial.intermediate_values]
    return [as_curve(trial.intermediate_values, sign, trial.value) for trial in complete]


def as_curve(reports: Mapping[Any, float], sign: float, last: float | None = None) -> Curve:
    """Returns reports times a sign in the order of steps, with another last value if there is one."""
    curve = {float(step): sign * reports[step] for step in sorted(reports)}
    return curve if last is None or not curve else curve | {next(reversed(curve)): sign * last}


def _number(cell: Any, column: str) -> float:
    try:
        cell = float(cell) if isinstance(cell, str) else cell
    except ValueError:
        raise DataError(f"column {column!r} must hold numbers, but has {cell!r}") from None
    return objective_value(cell, f"every cell of column {column!r}")
