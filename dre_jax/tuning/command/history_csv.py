"""A study's history as CSV: one row per trial, one column per hyperparameter, `value`, and optionally `state`."""

import math
import os
from collections.abc import Sequence
from typing import Any

from dre_jax.data.files import read_csv
from dre_jax.errors import DataError
from dre_jax.space.space import Space
from dre_jax.tuning.past.table_cells import read_cell, read_cells
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trials.trial import Trial

VALUE, STATE = "value", "state"
_STATES = ("", "complete", "running", "failed")


def read_history(path: str | os.PathLike[str], space: Space) -> list[Trial]:
    """Returns the trials in a CSV file, UTF-8, plain or gzip.

    The first line names the columns: hyperparameters in any order, `value`, and optionally `state`. An empty cell is an
    inactive hyperparameter, or the choice None. A trial with the `state` `failed` or the value NaN has failed; a trial
    without a value is running. Choices other than text are written as in JSON: true, null.

    Raises `DataError` if the file cannot be read, or a row is not a trial of the space; the message names the line.
    """
    rows = ((line, [cell.strip() for cell in cells]) for line, cells in read_csv(path))
    _, header = next(rows, (0, []))
    _check_header(path, header, space)
    trials: list[Trial] = []
    for line, cells in rows:
        try:
            trials.append(_trial(len(trials), dict(zip(header, cells, strict=True)), space))
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}") from error
    return trials


def add_history(optimizer: Optimizer, path: str | os.PathLike[str]) -> None:
    """Adds the trials in a CSV file to a study, all or none; see `read_history`. Raises `DataError`."""
    for trial in read_history(path, optimizer.space):
        if trial.state == "running":
            optimizer.add_running(trial.params)
        else:
            optimizer.add(trial.params, trial.value)


def _check_header(path: str | os.PathLike[str], header: Sequence[str], space: Space) -> None:
    names = [name for name in (VALUE, STATE) if name in space]
    if names:
        raise DataError(f"{path}: a hyperparameter of a history in CSV must not be called {names[0]!r}, but one is")
    unknown = [name for name in header if name not in (*space, VALUE, STATE)]
    if unknown or VALUE not in header:
        wrong = f"got {unknown[0]!r}" if unknown else f"{VALUE!r} is missing"
        raise DataError(f"{path}: columns must be {', '.join(space)}, {VALUE} and optionally {STATE}, but {wrong}")
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"{path}: a column must occur once, but {twice!r} occurs {header.count(twice)} times")


def _trial(number: int, cells: dict[str, str], space: Space) -> Trial:
    state: Any = cells.pop(STATE, "")
    text = cells.pop(VALUE)
    if state not in _STATES:
        raise DataError(f"{STATE} must be running, failed, complete or empty, but got {state!r}")
    nonempty = {name: read_cell(space[name], cell) for name, cell in cells.items() if cell}
    # A cell that is empty may also be the choice None.
    params = space.check(read_cells(space, dict.fromkeys(space, "") | cells) | nonempty)
    value = _number(text) if text else None
    if value is not None and math.isnan(value):
        state, value = state or "failed", None
    state = state or ("running" if value is None else "complete")
    if (state == "complete") != (value is not None):
        rule = f"a complete trial must have a {VALUE}, and no other may have one"
        raise DataError(f"{rule}, but got {VALUE}={text!r} and {STATE}={state!r}")
    return Trial(number, params, state, value)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise DataError(f"{VALUE} must be a number, but got {cell!r}") from None
