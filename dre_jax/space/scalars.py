"""Values that hyperparameters may have: choices, and numbers of Python."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any

Choice = str | int | float | bool | None
Value = Choice | tuple[Choice, ...]
"""A value of a hyperparameter: a choice, a number, or the items of a permutation in their order."""


def is_choice(value: object) -> bool:
    """Returns whether a value can be a choice: text, a finite number, true, false or None."""
    return value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def plain_value(value: Any) -> Any:
    """Returns the Python value of a scalar of NumPy, JAX or PyTorch, and any other value as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def value_at_step(low: float, step: float, n: int) -> float:
    """Returns `low + n * step` without rounding errors of binary fractions.

    Example:
      >>> value_at_step(0.0, 0.3, 3), 0.3 * 3
      (0.9, 0.8999999999999999)
    """
    return float(Decimal(repr(low)) + n * Decimal(repr(step)))


def levels_of(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Returns the choices as texts for column names; text that equals another choice's is quoted.

    Example:
      >>> levels_of(["a", 1, True, None, "1"])
      ('a', '1', 'true', 'null', '"1"')
    """
    plain = [choice if isinstance(choice, str) else json.dumps(choice) for choice in choices]
    return tuple(
        json.dumps(choice) if isinstance(choice, str) and plain.count(text) > 1 else text
        for choice, text in zip(choices, plain, strict=True)
    )


def is_finite(value: Any) -> bool:
    """Returns whether a value is a number that fits a float: Python's whole numbers may be larger."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max


def is_whole(value: Any) -> bool:
    """Returns whether a value is a whole number that fits a float."""
    return is_finite(value) and value == int(value)


def make_fields_plain(parameter: Any) -> None:
    """Converts scalar fields of NumPy and JAX to Python values."""
    for attribute in fields(parameter):
        object.__setattr__(parameter, attribute.name, plain_value(getattr(parameter, attribute.name)))


def to_list(values: Any) -> Any:
    """Returns an array as a list, and any other value as it is."""
    return values.tolist() if hasattr(values, "tolist") else values
