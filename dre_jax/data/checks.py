"""Conversion of parsed JSON to arrays; errors name the row that cannot be used.

The whole table is converted at once. Only if that fails, each row is checked, to name the invalid one.
"""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.errors import DataError

FloatArray = npt.NDArray[np.float64]


def table(value: Any, where: str) -> tuple[npt.NDArray[np.float32], FloatArray]:
    """One task's `{"X": .., "y": ..}` as arrays: X (n, D) float32 and y (n,) float64.

    `where` starts every message. Raises `DataError` for a missing key, an empty or ragged X, X and y of different
    length, and for values that are not finite numbers.

    >>> table({"X": [[0.5, 1]], "y": [[0.9]]}, "d.json")
    (array([[0.5, 1. ]], dtype=float32), array([0.9]))
    """
    for key in ("X", "y"):
        if key not in value:
            raise DataError(f"{where}: a task must hold 'X' and 'y', but {key!r} is missing")
        if not isinstance(value[key], list | np.ndarray):
            raise DataError(f"{where}: {key} must be a list, but got {show(value[key])}")
    n_rows, n_responses = len(value["X"]), len(value["y"])
    if n_rows != n_responses:
        raise DataError(f"{where}: X and y must have as many rows, but X has {n_rows} and y has {n_responses}")
    if n_rows == 0:
        raise DataError(f"{where}: a task must hold at least one row, but it is empty")
    return inputs(value["X"], where), responses(value["y"], where)


def inputs(rows: Any, where: str) -> npt.NDArray[np.float32]:
    """X as a finite float32 (n, D) array from n lists of D numbers, n and D at least 1. Raises `DataError`."""
    values = numbers(rows)
    if values is None or values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"{where}, {_bad_input(rows)}")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, which is refused below
        single = values.astype(np.float32)
    if not np.isfinite(single).all():
        row, column = np.argwhere(~np.isfinite(single))[0]
        entry = values[row, column]
        raise DataError(f"{where}, row {row}: X must be finite (float32), but column {column} is {entry}")
    return single


def responses(rows: Any, where: str) -> FloatArray:
    """Y as a finite float64 (n,) array from n numbers or n lists of one number. Raises `DataError`."""
    values = numbers(rows)
    if values is None or values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
        raise DataError(f"{where}, {_bad_response(rows)}")
    values = values.reshape(-1)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"{where}, row {row}: y must be finite, but got {values[row]}")
    return values


def design_rows(value: Any, n_rows: int, where: str) -> npt.NDArray[np.int64]:
    """An initial design's row numbers, as an int64 (k,) array of different rows of a table with `n_rows` rows.

    Raises `DataError` when it is empty, points outside the table, repeats a row or holds no whole numbers.

    >>> design_rows([4, 0], 5, "bo.json")
    array([4, 0])
    """
    if not isinstance(value, list) or not value:
        raise DataError(f"{where}: an initial design must be a list of at least one row number, but got {show(value)}")
    for row in value:
        if isinstance(row, bool) or not isinstance(row, int):
            raise DataError(f"{where}: an initial design must hold whole row numbers, but got {show(row)}")
        if not 0 <= row < n_rows:
            raise DataError(f"{where}: an initial design must point into the table's {n_rows} rows, but got row {row}")
    repeated_rows = [row for row, times in Counter(value).items() if times > 1]
    if repeated_rows:
        raise DataError(
            f"{where}: an initial design must not repeat a row, but row {repeated_rows[0]} occurs more than once"
        )
    return np.array(value, dtype=np.int64)


def numbers(rows: Any) -> FloatArray | None:
    """The rows as float64, or None when they are ragged or hold anything but numbers."""
    try:
        # No dtype here: NumPy would read the text "0.5" as a number if it were asked for floats.
        values = np.array(rows)
    except (ValueError, OverflowError):
        return None
    return values.astype(np.float64) if values.dtype.kind in "fiu" else None


def _bad_input(rows: list[Any]) -> str:
    for index, row in enumerate(rows):
        if not isinstance(row, list):
            return f"row {index}: a row of X must be a list of numbers, but got {show(row)}"
        if len(row) != len(rows[0]):
            return f"row {index}: every row of X must have {len(rows[0])} columns like row 0, but it has {len(row)}"
        if not row:
            return f"row {index}: a row of X must have at least one column, but it is empty"
        for column, entry in enumerate(row):
            if not is_number(entry):
                return f"row {index}: X must hold numbers, but column {column} is {show(entry)}"
    return "X must be a list of rows of numbers that fit float64"


def _bad_response(rows: list[Any]) -> str:
    nested = isinstance(rows[0], list)
    for index, row in enumerate(rows):
        if isinstance(row, list) and len(row) != 1:
            return f"row {index}: a row of y must hold one number, but it holds {len(row)}"
        if isinstance(row, list) != nested:
            return f"row {index}: y must be all numbers or all lists of one number, but it mixes them"
        entry = row[0] if nested else row
        if not is_number(entry):
            return f"row {index}: y must hold numbers, but got {show(entry)}"
    return "y must be a list of numbers that fit float64"


def is_number(entry: Any) -> bool:
    """Returns whether a parsed JSON value is a number (true and false are none) that fits float64 or int64."""
    return isinstance(entry, float) or (isinstance(entry, int) and not isinstance(entry, bool) and abs(entry) < 2**63)


def show(value: Any) -> str:
    """A value for a message, in one line, cut to 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
