"""NumPy's treatment of floating-point errors inside the library: the default, not the setting of the caller.

A program may set `numpy.seterr(all="raise")` to find its own errors. The library's computations rely on the default:
underflow gives zero silently, and overflow is handled where it can happen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def with_default_float_errors(compute: Callable[P, T]) -> Callable[P, T]:
    """Returns the function, under NumPy's default treatment of floating-point errors.

    Example:
      >>> @with_default_float_errors
      ... def smallest():
      ...     return np.float64(1e-300) ** 2
      >>> with np.errstate(all="raise"):
      ...     float(smallest())
      0.0
    """

    @wraps(compute)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            return compute(*args, **kwargs)

    return call
