"""Past evaluations in tables with one row per trial: data frames and CSV files."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dre_jax.data.features import FeatureType
from dre_jax.data.files import read_csv
from dre_jax.errors import DataError
from dre_jax.space.scalars import plain_value, to_list
from dre_jax.space.space import Space
from dre_jax.tuning.past.overlap import SpaceChanges
from dre_jax.tuning.past.table_cells import is_empty, read_cells
from dre_jax.tuning.past.table_columns import TableColumns, find_columns, outcomes_of, read_constraints, read_number
from dre_jax.tuning.past.task_features import constant_value, feature_names
from dre_jax.tuning.past.tasks import Evaluated, Exclusion, Past, past_of
from dre_jax.tuning.trials.trial import checked_cost

DEFAULT_TASK = "study"
"""Name of the past task of a table without a column of task names."""


def from_frame(
    frame: Any,
    space: Space,
    *,
    direction: str,
    task: str | None = "task",
    value: str = "value",
    cost: str | None = None,
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    feature_types: Mapping[str, FeatureType] | None = None,
) -> Past:
    """Returns past tasks from a data frame.

    The table may be `Optimizer.to_frame()` or the `trials_dataframe()` of an Optuna study as it is:

    - the column of a hyperparameter may have the prefix `params_`;
    - if the cells of a column `state` are states of trials, those that are not complete are excluded, and the column
      `cost` or `duration` has the costs;
    - the columns of constraints have the prefix `constraints_`, or Optuna's `system_attrs_constraints`; `past_of` says
      how they count.

    Args:
      frame: a data frame of pandas or polars, or a mapping of names to columns. Each row is a trial; hyperparameters,
        tasks and values have columns. Other columns are ignored. An empty cell (None, NaN, no text) is a hyperparameter
        that is inactive, or a trial without a value.
      space: the search space.
      direction: "minimize" or "maximize".
      task: the column of task names; None if all rows are of one study.
      value: the column of values.
      cost: the column of costs, such as seconds; an empty cell is an unknown one. None for the cost column of an
        export, if it has one.
      absent: hyperparameters that may have no column, with the values that earlier models had, as in `past_of`.
      renamed: new names of columns by their old ones.
      features: columns of features of the tasks, which are constant within a task; an empty cell is an unknown value.
      feature_types: descriptions of features, as in `past_of`.

    Returns:
      A task for each name in the task column; `exclusions` lists what does not fit, with the reason.

    Raises:
      DataError: for columns that are missing or of different lengths, a row without a task, or a feature that is not
        constant within a task; and as `past_of` for features.
      ConfigError: as `past_of`.

    Example:
      >>> from dre_jax.tuning import Float
      >>> frame = {"task": ["a"] * 4, "x": [0.1, 0.2, 0.3, 0.4], "value": [3.0, 1.0, 2.0, None]}
      >>> len(from_frame(frame, Space({"x": Float(0.0, 1.0)}), direction="minimize").tasks["a"].y)
      3
    """
    headers = list(getattr(frame, "columns", frame))
    options = dict[str, Any](direction=direction, task=task, value=value, cost=cost, absent=absent, renamed=renamed)
    options |= {"features": features, "feature_types": feature_types}
    return _read(headers, lambda: [frame[name] for name in headers], space, "a table", **options)


def from_csv(
    path: str | os.PathLike[str],
    space: Space,
    *,
    direction: str,
    task: str | None = "task",
    value: str = "value",
    cost: str | None = None,
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    feature_types: Mapping[str, FeatureType] | None = None,
) -> Past:
    r"""Returns past tasks from a CSV file, which may be an export as in `from_frame`.

    Args:
      path: the file, UTF-8, plain or gzip. Spaces around names and values are ignored.
      space: the search space.
      direction: "minimize" or "maximize".
      task: the column of task names; None if all rows are of one study.
      value: the column of values.
      cost: as in `from_frame`.
      absent: as in `from_frame`, as are ``features`` and ``feature_types``.
      renamed: new names of columns by their old ones.
      features: columns of features of the tasks.
      feature_types: descriptions of features.

    Returns:
      As `from_frame`.

    Raises:
      DataError: for a file that cannot be read or is not a table; the message names it, and the line. And as
        `from_frame`.
      ConfigError: as `past_of`.

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
    options |= {"features": features, "feature_types": feature_types}
    return _read(header, lambda: list(zip(*rows, strict=True)) or [()] * len(header), space, str(path), **options)


def _read(
    headers: Sequence[Any],
    read_columns: Callable[[], Sequence[Any]],
    space: Space,
    source: str,
    *,
    direction: str,
    task: str | None,
    value: str,
    cost: str | None,
    absent: Mapping[str, Any] | None,
    renamed: Mapping[str, str] | None,
    features: Sequence[str],
    feature_types: Mapping[str, FeatureType] | None,
) -> Past:
    """Returns past tasks from the columns of a table."""
    changes, features = SpaceChanges(space, absent or {}, renamed or {}), feature_names(features)
    columns = find_columns(headers, space, changes.renamed)
    required_names = [name for name in (task, value, cost, *features) if name is not None]
    _check_columns(columns, space, source, required_names, changes.absent)
    all_columns = read_columns()

    def cells(index: int) -> list[Any]:
        return [*to_list(all_columns[index])]

    values = cells(columns.other_columns[value][0])
    names = [DEFAULT_TASK] * len(values) if task is None else cells(columns.other_columns[task][0])
    outcomes = None if columns.state is None else outcomes_of(cells(columns.state))
    default_cost = None if outcomes is None else columns.exported_cost
    cost_name = default_cost if cost is None else cost
    costs = [None] * len(values) if cost_name is None else cells(columns.other_columns[cost_name][0])
    params = {name: cells(indices[0]) for name, indices in columns.hyperparameters.items()}
    constraints = {name: cells(index) for name, index in columns.constraints.items()}
    feature_cells = {name: cells(columns.other_columns[name][0]) for name in features}
    further = (*params.values(), *constraints.values(), *feature_cells.values())
    lengths = [len(column) for column in (names, values, costs, *further)]
    if len(set(lengths)) > 1:
        raise DataError(f"columns must be equally long, but have {lengths} rows")
    tasks: dict[str, list[Evaluated]] = {}
    unfinished, unreadable = dict[str, list[str]](), dict[str, list[str]]()
    for i, name in enumerate(names):
        if is_empty(name):
            raise DataError(f"{source}: every row must name its task, but row {i + 1} does not")
        trials = tasks.setdefault(str(name), [])
        if outcomes is not None and outcomes[i] != "complete":
            unfinished.setdefault(str(name), []).append(outcomes[i])
            continue
        row = {column: params[column][i] if column in params else None for column in space}
        try:
            number = _value(values[i], value)
            seconds = _cost(costs[i], cost_name, is_default=cost is None)
            limits = read_constraints({label: column[i] for label, column in constraints.items()})
        except DataError as error:
            unreadable.setdefault(str(name), []).append(f"row {i + 1}: {error}")
            continue
        trials.append(Evaluated(read_cells(space, row), number, seconds, limits))
    exclusions = [Exclusion.of_trials(name, reasons) for name, reasons in unreadable.items()]
    exclusions += [Exclusion.of_outcomes(name, states) for name, states in unfinished.items()]
    metric = None if value == "value" else value
    return past_of(
        space,
        tasks,
        direction=direction,
        metric=metric,
        exclusions=exclusions,
        absent=absent,
        features=_features_by_task(names, feature_cells, source),
        feature_types=feature_types,
    )


def _features_by_task(
    names: Sequence[Any], cells: Mapping[str, Sequence[Any]], source: str
) -> dict[str, dict[str, Any]]:
    """Returns the features of tasks from their columns. Raises `DataError` for one that is not constant in a task."""
    rows: dict[str, list[int]] = {}
    for i, name in enumerate(names if cells else ()):
        rows.setdefault(str(name), []).append(i)
    features: dict[str, dict[str, Any]] = {}
    for task, numbers in rows.items():
        for column, values in cells.items():
            value = constant_value(f"{source}: task {task!r}", column, (values[i] for i in numbers))
            features.setdefault(task, {})[column] = value
    return features


def _check_columns(
    columns: TableColumns, space: Space, source: str, required_names: Sequence[str], absent: Mapping[str, Any]
) -> None:
    """Raises `DataError` if a column is missing or occurs twice."""
    if duplicate := next(
        (name for name in required_names if name in space and name not in columns.other_columns), None
    ):
        raise DataError(f"{source}: {duplicate!r} must be a column of its own, but is a hyperparameter")
    for name in (*required_names, *space):
        indices = (
            columns.other_columns.get(name, []) if name in required_names else columns.hyperparameters.get(name, [])
        )
        if len(indices) > 1:
            raise DataError(f"{source}: a column must occur once, but {name!r} occurs {len(indices)} times")
        if not indices and (name in required_names or name not in absent):
            hint = ""
            if name == "task":
                hint = ": task=None (--task '') reads the table as the trials of one study"
            elif name in space:
                hint = f"; absent={{{name!r}: None}} says that past tasks do not have this hyperparameter"
            rule = f"{source} must have the columns {', '.join([*required_names, *space])}"
            raise DataError(f"{rule}, but has no {name!r}{hint}")


def _value(cell: Any, column: str) -> float:
    try:
        return math.nan if is_empty(cell) else float(plain_value(cell))
    except (OverflowError, TypeError, ValueError):
        raise DataError(f"{column} must be a number, but got {cell!r}") from None


def _cost(cell: Any, column: str | None, *, is_default: bool) -> float | None:
    """Returns the cost in a cell, None if it is unknown; in a column that the caller did not name, also if it is 0."""
    if column is None or is_empty(cell):
        return None
    try:
        return checked_cost(read_number(cell))
    except (DataError, OverflowError, TypeError, ValueError):
        if is_default:
            return None
        raise DataError(f"{column} must be a finite, positive number, but got {cell!r}") from None
