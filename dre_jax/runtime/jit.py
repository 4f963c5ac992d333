"""Compilation of functions that users call outside of `jax.jit`, and of programs that run for a short time."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jax import Array

from dre_jax.runtime.cache import enabled_folder
from dre_jax.runtime.kept_programs import KeptPrograms

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
        jitted_function = jax.jit(function, static_argnames=static, inline=True)

        @functools.wraps(function)  # keeps the signature and the types
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return jitted_function(*args, **kwargs)

        return call

    return decorate


LESS_EFFORT = {
    "xla_backend_optimization_level": 1,
    "xla_cpu_parallel_codegen_split_count": 2,
    "xla_cpu_use_fusion_emitters": False,
}
"""Options of XLA for CPUs. Matrix products and factorisations are library calls, which no option changes."""
_LEAST_EFFORT = LESS_EFFORT | {"xla_backend_optimization_level": 0}
_FEW_NUMBERS = 10_000


def few_numbers(*args: object, **kwargs: object) -> bool:
    """Returns whether the arrays of the arguments have at most 10,000 numbers.

    Example:
      >>> few_numbers(jax.numpy.zeros((10, 1000))), few_numbers({"x": jax.numpy.zeros((11, 1000))})
      (True, False)
    """
    return sum(getattr(leaf, "size", 1) for leaf in jax.tree.leaves((args, kwargs))) <= _FEW_NUMBERS


def less_effort_options() -> dict[str, Any]:
    """Returns the compiler's options for less effort; none off a CPU, or where the process wants even less."""
    plain = jax.default_backend() != "cpu" or jax.config.read("jax_disable_most_optimizations")
    return {} if plain else LESS_EFFORT


def jit_with_less_effort(
    *static: str, purpose: str = "", is_brief: Callable[..., bool] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that compiles a function as `jax.jit` does, on a CPU in half the time.

    Inside of `dre_jax.runtime.cache.keep_programs_within`, later processes load the program without tracing it.

    For programs of hundreds of small operations that run for seconds at most: with the compiler's full effort, a user
    waits for the compiler alone. The programs run as fast.

    Args:
      static: names of the arguments that are not arrays; they must be hashable.
      purpose: what the program computes, for a line on standard error where a user waits for its compilation.
      is_brief: function of the arguments that says whether a call is short and rare, such as `few_numbers`. The
        compiler then does not optimise: it takes a third of the time, and the program up to three times as long.

    Example:
      >>> @jit_with_less_effort("power")
      ... def total(x, power=1):
      ...     return (x**power).sum()
      >>> float(total(jax.numpy.array([1.0, 2.0]), power=2))
      5.0
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        full: Any = jax.jit(function, static_argnames=static)
        jitted: list[Any] = [
            jax.jit(function, static_argnames=static, compiler_options=options)
            for options in (LESS_EFFORT, _LEAST_EFFORT)
        ]
        kept = [KeptPrograms(program, function, static, purpose) for program in jitted]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            # The options are those of a CPU and of a whole program; a process with even less effort has its own
            # options.
            leaves = jax.tree.leaves((args, kwargs))
            inside = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
            if inside or not less_effort_options():
                return full(*args, **kwargs)
            least = is_brief is not None and is_brief(*args, **kwargs)
            folder = enabled_folder()
            return jitted[least](*args, **kwargs) if folder is None else kept[least](folder, *args, **kwargs)

        untyped_call: Any = call
        untyped_call._cache_size = lambda: (
            sum(program._cache_size() for program in (full, *jitted)) + sum(len(program.programs) for program in kept)
        )
        return call

    return decorate


def compile_ahead(function: Callable[..., object], *args: Any) -> None:
    """Begins to compile the programs that a function runs, side by side in other threads; the function waits for them.

    The function runs programs of `jit_with_less_effort`, and only passes arrays on. It is called with shapes in place
    of arrays. Programs that are kept are loaded. Nothing happens where programs are not kept.
    """
    if less_effort_options() and enabled_folder() is not None:
        function(*jax.tree.map(_shape_of, args))


def _shape_of(leaf: Any) -> Any:
    """Returns the shape in place of an array, and anything else itself."""
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))


def compile_all_with_less_effort() -> None:
    """Sets the options of `jit_with_less_effort` for CPUs for all programs, unless ``XLA_FLAGS`` names one of them.

    Nothing changes in a process that has compiled already.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    names = [name for name in LESS_EFFORT if name.startswith("xla_cpu_")]
    if not any(name in flags for name in names):
        options = (f"--{name}={str(LESS_EFFORT[name]).lower()}" for name in names)
        os.environ["XLA_FLAGS"] = " ".join([flags, *options]).strip()


def seed_key(seed: int) -> Array:
    """Returns `jax.random.key` of a seed below 2^32, for which JAX would trace and lower a program in each process.

    Example:
      >>> bool(seed_key(7) == jax.random.key(7))
      True
    """
    if jax.config.jax_default_prng_impl != "threefry2x32":  # type: ignore[attr-defined]
        return jax.random.key(seed)
    return jax.random.wrap_key_data(jax.device_put(np.array([0, seed], np.uint32)))
