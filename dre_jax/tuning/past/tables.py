"""Past evaluations in tables with one row per trial: data frames and CSV files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dre_jax.data.files import read_csv
from dre_jax.errors import DataError
from dre_jax.tuning.past.tasks import Evaluated, Exclusion, Past, past_of
from dre_jax.tuning.space.scalars import plain_value, to_list
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.table_cells import is_empty, read_cells


def from_frame(
    frame: Any,
    space: Space,
    *,
    direction: str,
    task: str = "task",
    value: str = "value",
    cost: str | None = None,
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Past:
    """Returns past tasks from a data frame.

    Args:
      frame: pandas', polars', or a mapping of names to columns: a row a trial, a column a hyperparameter, and two more.
        Other columns are ignored. An empty cell (None, NaN, no text) is a hyperparameter that is inactive, or a trial
        without a value.
      space: the search space.
      direction: "minimize" or "maximize".
      task: the column of task names.
      value: the column of values.
      cost: the column of costs, such as seconds; an empty cell is an unknown one. None for none.
      absent: hyperparameters that may have no column, with the values that earlier models had, as in `past_of`.
      renamed: new names of columns by their old ones.

    Returns:
      A task for each name in the task column; `exclusions` lists what does not fit, with the reason.

    Raises:
      DataError: for columns that are missing or of different lengths, or a row without a task.
      ConfigError: for an unknown direction.

    Example:
      >>> from dre_jax.tuning import Float
      >>> frame = {"task": ["a"] * 4, "x": [0.1, 0.2, 0.3, 0.4], "value": [3.0, 1.0, 2.0, None]}
      >>> len(from_frame(frame, Space({"x": Float(0.0, 1.0)}), direction="minimize").tasks["a"].y)
      3
    """
    headers = list(getattr(frame, "columns", frame))
    options = dict[str, Any](direction=direction, task=task, value=value, cost=cost, absent=absent, renamed=renamed)
    return _read(headers, lambda: [frame[name] for name in headers], space, "a table", **options)


def from_csv(
    path: str | os.PathLike[str],
    space: Space,
    *,
    direction: str,
    task: str = "task",
    value: str = "value",
    cost: str | None = None,
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Past:
    r"""Returns past tasks from a CSV file.

    Args:
      path: of the file, UTF-8, plain or gzip. Spaces around names and values are ignored.
      space: the search space.
      direction: "minimize" or "maximize".
      task: the column of task names.
      value: the column of values.
      cost: the column of costs, such as seconds; an empty cell is an unknown one. None for none.
      absent: as in `from_frame`.
      renamed: new names of columns by their old ones.

    Returns:
      As `from_frame`.

    Raises:
      DataError: for a file that cannot be read or is no table; the message names it, and the line.
      ConfigError: for an unknown direction.

    Example:
      >>> import tempfile
      >>> from dre_jax.tuning import Float
      >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
      ...     _ = file.write("task,x,value\na,0.1,3\na,0.2,1\na,0.3,2\n")
      ...     file.flush()
      ...     list(from_csv(file.name, Space({"x": Float(0.0, 1.0)}), direction="minimize").tasks)
      ['a']
    """
    path = Path(path)
    rows = (cells for _, cells in read_csv(path))
    header = next(rows, [])
    options = dict[str, Any](direction=direction, task=task, value=value, cost=cost, absent=absent, renamed=renamed)
    return _read(header, lambda: list(zip(*rows, strict=True)) or [()] * len(header), space, str(path), **options)


def _read(
    headers: Sequence[Any],
    read_columns: Callable[[], Sequence[Any]],
    space: Space,
    source: str,
    *,
    direction: str,
    task: str,
    value: str,
    cost: str | None,
    absent: Mapping[str, Any] | None,
    renamed: Mapping[str, str] | None,
) -> Past:
    """Returns past tasks from the columns of a table."""
    plain = (name.strip() if isinstance(name, str) else name for name in headers)
    names = [(renamed or {}).get(name, name) for name in plain]
    own = [task, value] if cost is None else [task, value, cost]
    if duplicate := next((name for name in own if name in space), None):
        raise DataError(f"{source}: {duplicate!r} must be a column of its own, but is a hyperparameter")
    for name in (*own, *space):
        if names.count(name) > 1:
            raise DataError(f"{source}: a column must occur once, but {name!r} occurs {names.count(name)} times")
        if name not in names and name not in (absent or {}):
            remedy = f"; absent={{{name!r}: None}} says that past tasks do not have this hyperparameter"
            hint = remedy if name in space else ""
            rule = f"{source} must have the columns {', '.join([*own, *space])}"
            raise DataError(f"{rule}, but has no {name!r}{hint}")
    all_columns, present = read_columns(), [name for name in (*own, *space) if name in names]
    columns = {name: [*to_list(all_columns[names.index(name)])] for name in present}
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        raise DataError(f"columns must be equally long, but have {lengths} rows")
    columns |= {name: [None] * lengths[0] for name in space if name not in columns}
    tasks: dict[str, list[Evaluated]] = {}
    unreadable: dict[str, list[str]] = {}
    for i, (task_cell, cell) in enumerate(zip(columns[task], columns[value], strict=True)):
        if is_empty(task_cell):
            raise DataError(f"{source}: every row must name its task, but row {i + 1} does not")
        trials = tasks.setdefault(str(task_cell), [])
        cost_cell = None if cost is None else columns[cost][i]
        try:
            number = float("nan") if is_empty(cell) else float(plain_value(cell))
            seconds = None if is_empty(cost_cell) else float(plain_value(cost_cell))
        except (OverflowError, TypeError, ValueError):
            rule = f"{value} must be a number, but got {cell!r}"
            rule = rule if cost is None else f"{value} and {cost} must be numbers, but got {cell!r} and {cost_cell!r}"
            unreadable.setdefault(str(task_cell), []).append(rule)
            continue
        trials.append(Evaluated(read_cells(space, {name: columns[name][i] for name in space}), number, seconds))
    exclusions = [Exclusion.of_trials(name, reasons) for name, reasons in unreadable.items()]
    metric = None if value == "value" else value
    return past_of(space, tasks, direction=direction, metric=metric, exclusions=exclusions, absent=absent)
