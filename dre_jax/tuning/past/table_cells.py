"""Cells of tables as values of hyperparameters."""

import ast
import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.scalars import is_finite, levels_of, plain_value
from dre_jax.space.space import Space

_NEAR = 1e-6
"""Relative tolerance for numbers in single precision."""
_LITERALS = {"true": True, "false": False, "none": None}
"""Literals that R, Python and spreadsheets spell differently from JSON, in lower case."""


def is_empty(cell: Any) -> bool:
    """Returns whether a cell is empty: an empty text, None, NaN, or the same of pandas."""
    if type(cell) is float:  # most cells of a large table
        return math.isnan(cell)
    cell = plain_value(cell)
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return not cell.strip() if isinstance(cell, str) else isinstance(cell, float) and math.isnan(cell)


def read_cells(space: Space, row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration in a row, to be validated by `Space.check`.

    An empty cell is an inactive hyperparameter, or the choice None if there is one.
    """
    values = {}
    for name, parameter in space.items():
        if not is_empty(row[name]):
            values[name] = read_cell(parameter, row[name])
        elif isinstance(parameter, Categorical) and None in parameter.choices:
            values[name] = None
    return space.active_part(values)


def read_cell(parameter: Parameter, cell: Any) -> Any:
    """Returns the value of a cell, or the cell itself, which `Space.check` then rejects.

    Choices other than text are written as in JSON, Python or R, and the items of a permutation as a list of JSON or
    Python. The numbers 1 and 0 stand for true and false, unless they are choices themselves; numbers may be in single
    precision.

    Example:
      >>> read_cell(Categorical([True, "a", 2]), "TRUE"), read_cell(Int(1, 9), "3"), read_cell(Float(0.0, 1.0), "x")
      (True, 3, 'x')
    """
    cell = plain_value(cell)
    if isinstance(parameter, Categorical):
        return _choice(parameter, cell.strip() if isinstance(cell, str) else cell)
    if isinstance(parameter, Permutation):
        return _order(cell) if isinstance(cell, str) else cell
    if isinstance(cell, str):
        cell = _number(cell, parameter)
    if isinstance(parameter, Float) and isinstance(cell, float):
        bound = min(max(cell, parameter.low), parameter.high)
        return bound if math.isclose(cell, bound, rel_tol=_NEAR, abs_tol=0.0) else cell
    return cell


def _order(cell: str) -> Any:
    """Returns the items in a cell, a list in JSON or Python; the cell itself if it is none."""
    for parse in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return parse(cell)
    return cell


def _choice(parameter: Categorical, cell: Any) -> Any:
    choices: Sequence[Any] = parameter.choices
    names = levels_of(choices)
    if isinstance(cell, str) and cell in names:
        return choices[names.index(cell)]
    value = cell
    if isinstance(cell, str):
        try:
            value = _LITERALS[cell.lower()] if cell.lower() in _LITERALS else json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    for choice in choices:
        same_kind = isinstance(choice, bool) == isinstance(value, bool)
        are_numbers = is_finite(choice) and is_finite(value)
        if same_kind and (choice == value or (are_numbers and math.isclose(choice, value, rel_tol=_NEAR))):
            return choice
    if isinstance(value, (int, float)) and value in (0, 1):
        return next((choice for choice in choices if choice is bool(value)), cell)
    return cell


def _number(text: str, parameter: Float | Int) -> Any:
    for kind in (int, float) if isinstance(parameter, Int) else (float,):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
