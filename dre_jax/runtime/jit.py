"""Compilation of functions that users call outside of `jax.jit`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def jit_eager_calls(*static: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that compiles a function of arrays when it is called without `jax.jit`, as in a notebook.

    JAX compiles every operation of an eager call by itself, some 20 ms each; the decorated function is one program per
    shape. Inside of a compiled function nothing changes.

    Args:
      static: names of the arguments that are not arrays; they must be hashable.

    Example:
      >>> @jit_eager_calls("power")
      ... def total(x, power=1):
      ...     return (x**power).sum()
      >>> float(total(jax.numpy.array([1.0, 2.0]), power=2))
      5.0
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        compiled = jax.jit(function, static_argnames=static, inline=True)

        @functools.wraps(function)  # a function, with the signature and the types that it has
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return compiled(*args, **kwargs)

        return call

    return decorate
