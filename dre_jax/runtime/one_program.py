"""Functions that are one compiled program also where they are called as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def one_program(*static: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a function of arrays that people call without `jax.jit`, in a notebook say.

    JAX compiles every operation of such a call for itself, some 20 ms each; this way there is one program a shape.
    Inside a function that is compiled nothing changes.

    Args:
      static: names of arguments that are no arrays; they must be hashable.

    Example:
      >>> @one_program("power")
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
