"""NumPy's functions that rules call, for numbers and truth values of Python: NumPy takes a microsecond for each.

Rules call them where they are asked about one configuration; see `dre_jax.space.layout_rules.functions_of`.
"""

from typing import Any, TypeVar

_T = TypeVar("_T")


def where(condition: bool, x: _T, y: _T) -> _T:
    """Returns x where the condition holds, otherwise y."""
    return x if condition else y


def maximum(x: float, y: float) -> float:
    """Returns the larger number."""
    return x if x > y else y


def minimum(x: float, y: float) -> float:
    """Returns the smaller number."""
    return x if x < y else y


def logical_not(x: bool) -> bool:
    """Returns the opposite truth value."""
    return not x


def expand_dims(x: _T, axis: int) -> _T:
    """Returns the number, which meets arrays of any dimensions."""
    return x


def any(x: Any, axis: int) -> bool:
    """Returns whether an array, or the truth value in place of one, has a true entry."""
    return x is True or bool(x.any())
