"""Several measurements of one configuration: their mean, its standard error, and the best mean of a study.

A study has replicates in two forms: a trial whose value is the mean of several measurements, and trials that repeat an
earlier one (`Trial.repeats`). The error of a single measurement is estimated from all of them together, as two or three
measurements of one configuration say little about it,

    s^2 = sum over configurations of the squared deviations from the mean / (measurements - configurations).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.errors import DataError
from dre_jax.space.scalars import to_list
from dre_jax.tuning.trials.trial import Trial, objective_value


def measurements_of(value: Any) -> tuple[float, ...]:
    """Returns the measurements of a trial as floats: those of a list, a tuple or an array, or the only one.

    Raises `DataError` for anything but numbers, and for none.

    Example:
      >>> measurements_of([1, 3]), measurements_of(2)
      ((1.0, 3.0), (2.0,))
    """
    values = to_list(value)
    if not isinstance(values, (list, tuple)):
        return (objective_value(values),)
    if not values:
        raise DataError("a trial needs one measurement or more, but got an empty list")
    return tuple(objective_value(number, "a measurement of a trial") for number in values)


def mean_and_error(measurements: Sequence[float], error: float | None = None) -> tuple[float, float | None]:
    """Returns the mean of measurements and its standard error: ``error`` for one, and None for infinite ones.

    Example:
      >>> mean_and_error([1.0, 3.0]), mean_and_error([1.0])
      ((2.0, 1.0), (1.0, None))
    """
    if len(measurements) == 1:
        return measurements[0], error
    mean = sum(measurements) / len(measurements)
    if not math.isfinite(mean):
        return mean, None
    return mean, float(np.std(measurements, ddof=1)) / math.sqrt(len(measurements))


def merge_repeats(trials: Iterable[Trial]) -> list[Trial]:
    """Returns complete trials, with those that repeat an earlier one merged into it.

    The value of a merged trial is the mean of all measurements. A trial whose first one has no value stays as it is.

    Example:
      >>> first, second = Trial(0, {"x": 0.5}, "complete", 1.0), Trial(1, {"x": 0.5}, "complete", 3.0, repeats=0)
      >>> [(trial.number, trial.value, trial.n_measurements) for trial in merge_repeats([first, second])]
      [(0, 2.0, 2)]
    """
    groups, group_of = list[list[Trial]](), dict[int, list[Trial]]()
    for trial in trials:
        first = trial.number if trial.repeats is None else trial.repeats
        if trial.repeats is None or first not in group_of:
            groups.append([])
            group_of[first] = groups[-1]
        group_of[first].append(trial)
    return [group[0] if len(group) == 1 else _merge(group) for group in groups]


def _merge(group: Sequence[Trial]) -> Trial:
    measurements = tuple(number for trial in group for number in _measurements(trial))
    mean, error = mean_and_error(measurements)
    constraints = {name: _mean([trial.constraints[name] for trial in group]) for name in group[0].constraints}
    return group[0].with_fields(value=mean, stderr=error, measurements=measurements, constraints=constraints)


def _mean(values: Sequence[float]) -> float:
    """Returns the mean of the values that are known, NaN if none is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _measurements(trial: Trial) -> tuple[float, ...]:
    return trial.measurements or (() if trial.value is None else (trial.value,))


def measurement_errors(trials: Sequence[Trial]) -> npt.NDArray[np.float64]:
    """Returns the standard errors f64[n] of the values of complete trials, as replicates estimate them.

    They are 0 where the replicates do not allow an estimate. A trial with an error that the user knows keeps it. Merge
    repeats first.

    Example:
      >>> trials = [Trial(0, {}, "complete", 2.0, measurements=(1.0, 3.0)), Trial(1, {}, "complete", 5.0)]
      >>> measurement_errors(trials).round(3).tolist()
      [1.0, 1.414]
    """
    squares, freedom = 0.0, 0
    for trial in trials:
        numbers = np.array(_measurements(trial))
        if len(numbers) > 1 and np.isfinite(numbers).all():
            squares, freedom = squares + float(np.sum((numbers - numbers.mean()) ** 2)), freedom + len(numbers) - 1
    deviation = math.sqrt(squares / freedom) if freedom else 0.0
    own_errors = np.array([0.0 if trial.stderr is None or trial.measurements else trial.stderr for trial in trials])
    counts = np.array([max(len(trial.measurements), 1) for trial in trials])
    return np.where(own_errors > 0.0, own_errors, deviation / np.sqrt(counts))
