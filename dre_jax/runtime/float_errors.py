"""NumPy's treatment of floating-point errors inside the library: the default, not the setting of the caller.

A program may set `numpy.seterr(all="raise")` to find its own errors. The library's computations rely on the default:
underflow gives zero silently, and overflow is handled where it can happen.

Example:
  >>> @with_default_float_errors
  ... def smallest():
  ...     return np.float64(1e-300) ** 2
  >>> with np.errstate(all="raise"):
  ...     float(smallest())
  0.0
"""

import numpy as np

with_default_float_errors = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
"""Decorator of functions that compute under NumPy's default treatment of floating-point errors."""
