"""What functions of arrays need to work alike with NumPy and JAX: NumPy on the host, JAX inside of a program.

On the host, NumPy compiles nothing, and computes in float64 for methods of any precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np
from jax import lax

T = TypeVar("T")

AnyArray: TypeAlias = Any
"""An array of NumPy or JAX, in annotations such as `Float[AnyArray, "n D"]`; to mypy, operations of both are Any."""


def namespace(array: Any) -> Any:
    """Returns `numpy` for an array of NumPy or a number of Python, and `jax.numpy` for an array of JAX.

    Example:
      >>> namespace(np.zeros(2)).__name__, namespace(0.5).__name__, namespace(jax.numpy.zeros(2)).__name__
      ('numpy', 'numpy', 'jax.numpy')
    """
    return np if isinstance(array, (int, float)) else array.__array_namespace__()


def special(array: Any) -> Any:
    """Returns the special functions for an array: SciPy's or JAX's, as `namespace` has the others."""
    if namespace(array) is not np:
        return jax.scipy.special
    import scipy.special  # importing it takes a tenth of a second

    return scipy.special


def branch(condition: Any, if_true: Callable[[], T], if_false: Callable[[], T]) -> T:
    """Returns the result of one of two functions: as `jax.lax.cond` inside of a program, else by a Python condition.

    For the shape of a condition (`dre_jax.runtime.jit.compile_ahead`), it is the first function's.

    Example:
      >>> branch(np.bool_(True), lambda: "taken", lambda: "left")
      'taken'
    """
    if isinstance(condition, jax.core.Tracer):
        result: T = lax.cond(condition, if_true, if_false)
        return result
    return if_true() if isinstance(condition, jax.ShapeDtypeStruct) or condition else if_false()


def loop_while(condition: Callable[[T], Any], step: Callable[[T], T], value: T) -> T:
    """Returns the first value for which a condition is false: as `jax.lax.while_loop`, in Python for NumPy's arrays.

    Example:
      >>> loop_while(lambda n: n < 100, lambda n: 2 * n, np.int64(3)).item()
      192
    """
    if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        return lax.while_loop(condition, step, value)
    while condition(value):
        value = step(value)
    return value
