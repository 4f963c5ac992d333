"""Columns of tables of past trials: by a user, by `to_frame`, and by Optuna's `trials_dataframe`."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dre_jax.errors import DataError
from dre_jax.space.scalars import plain_value
from dre_jax.space.space import Space
from dre_jax.tuning.past.table_cells import is_empty

PARAMS = "params_"
"""Prefix of hyperparameters in exports: of all in Optuna's, of those called like another column in `to_frame`."""
_CONSTRAINTS = ("constraints_", "system_attrs_constraints:")
_CONSTRAINT_LIST = "system_attrs_constraints"  # of Optuna before 5
_STATE, _COSTS = "state", ("cost", "duration")
_OUTCOMES = {"complete", "running", "paused", "stopped", "failed", "pruned", "fail", "waiting"}
_DURATION = re.compile(r"(-?\d+) days? (\d+):(\d+):(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class TableColumns:
    """Positions of the columns of a table.

    Example:
      >>> from dre_jax.tuning import Float
      >>> columns = find_columns(["params_x", "value", "state"], Space({"x": Float(0.0, 1.0)}), {})
      >>> columns.hyperparameters, columns.other_columns["value"]
      ({'x': [0]}, [1])
    """

    hyperparameters: Mapping[str, list[int]]
    """Positions of the columns of each hyperparameter that the table has."""
    other_columns: Mapping[str, list[int]]
    """Positions of all other columns by name."""

    @property
    def constraints(self) -> dict[str, int]:
        """The columns of constraints by name; a column of lists is called ""."""
        return {
            name.removeprefix(prefix): indices[0]
            for name, indices in self.other_columns.items()
            for prefix in (*_CONSTRAINTS, _CONSTRAINT_LIST)
            if name.startswith(prefix) and (prefix != _CONSTRAINT_LIST or name == prefix)
        }

    @property
    def state(self) -> int | None:
        """The column that an export has for the states of its trials."""
        return self.other_columns[_STATE][0] if _STATE in self.other_columns else None

    @property
    def exported_cost(self) -> str | None:
        """The name of the column that an export has for the costs of its trials."""
        return next((name for name in _COSTS if name in self.other_columns), None)


def find_columns(headers: Iterable[Any], space: Space, renamed: Mapping[str, str]) -> TableColumns:
    """Returns the columns of a table; a column with the prefix of exports comes before one without.

    Headers are names, or tuples for a data frame with several levels of names. ``renamed`` has new names by their old
    ones.
    """
    prefixed, plain = dict[str, list[int]](), dict[str, list[int]]()
    for i, header in enumerate(headers):
        parts = header if isinstance(header, tuple) else (header,)
        text = "_".join(str(part).strip() for part in parts if str(part).strip())
        name = text.removeprefix(PARAMS)
        name = renamed.get(name, name)
        if text.startswith(PARAMS) and name in space and renamed.get(text, text) not in space:
            prefixed.setdefault(name, []).append(i)
        else:
            plain.setdefault(renamed.get(text, text), []).append(i)
    hyperparameters = {
        name: prefixed[name] if name in prefixed else plain[name] for name in space if name in (prefixed | plain)
    }
    return TableColumns(
        hyperparameters, {name: indices for name, indices in plain.items() if hyperparameters.get(name) != indices}
    )


def outcomes_of(cells: Sequence[Any]) -> list[str] | None:
    """Returns the states of trials in lower case; None if the cells of the column are something else.

    Example:
      >>> outcomes_of(["COMPLETE", "TrialState.PRUNED", None]), outcomes_of(["Ohio", "COMPLETE"])
      (['complete', 'pruned', 'complete'], None)
    """
    texts = ["complete" if is_empty(cell) else str(cell).strip().rpartition(".")[2].lower() for cell in cells]
    return texts if set(texts) <= _OUTCOMES else None


def read_number(cell: Any) -> float:
    """Returns the number in a cell, or the seconds of a duration. Raises `ValueError` or `TypeError` for anything else.

    Example:
      >>> read_number("0 days 00:01:30.5"), read_number("2")
      (90.5, 2.0)
    """
    cell = plain_value(cell)
    if hasattr(cell, "total_seconds"):
        return float(cell.total_seconds())
    if isinstance(cell, str) and (match := _DURATION.fullmatch(cell.strip())):
        days, hours, minutes, seconds = map(float, match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return float(cell)


def read_constraints(cells: Mapping[str, Any]) -> dict[str, float]:
    """Returns the constraints in the cells of a row, NaN for empty cells.

    Raises `DataError` for a cell that is not a number.

    Example:
      >>> read_constraints({"memory": "-1.5", "time": None, "": "[0.5, 2]"})
      {'memory': -1.5, 'time': nan, '0': 0.5, '1': 2.0}
    """
    values: dict[str, float] = {}
    for name, cell in cells.items():
        has_none = not isinstance(cell, (list, tuple)) and is_empty(cell)
        try:
            if name:
                values[name] = math.nan if has_none else read_number(cell)
            elif not has_none:
                numbers = json.loads(cell.replace("(", "[").replace(")", "]")) if isinstance(cell, str) else cell
                values |= {str(i): float(number) for i, number in enumerate(numbers)}
        except (TypeError, ValueError):
            raise DataError(f"a constraint must be a number, but got {cell!r}") from None
    return values
