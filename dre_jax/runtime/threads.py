"""The number of threads of factorisations on a CPU: one.

There, JAX factorises by OpenBLAS, which starts one thread per core for each matrix. If the cores have other work, such
as other devices of this process or the model that is tuned, the threads wait for each other: with ``gp``, 60 trials
took 100 to 190 s instead of 1 to 2.5 s. ``OPENBLAS_NUM_THREADS``, where it is set, decides.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import jax
from threadpoolctl import ThreadpoolController

from dre_jax.runtime.devices import cores

VARIABLE = "OPENBLAS_NUM_THREADS"

P = ParamSpec("P")
T = TypeVar("T")


class SharedContext:
    """A context that several threads share: the first thread enters it, the last one exits it.

    Example:
      >>> @contextlib.contextmanager
      ... def announcement():
      ...     print("in")
      ...     yield
      ...     print("out")
      >>> shared = SharedContext(announcement)
      >>> with shared:
      ...     with shared:
      ...         print("twice")
      in
      twice
      out
    """

    def __init__(self, make: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._inside = 0
        self._context = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._context.enter_context(self._make())
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._context.close()

    def is_entered_or(self, condition: Callable[[], Any]) -> bool:
        """Returns whether a thread is inside, or else a condition holds, while no thread enters or exits."""
        with self._lock:
            return self._inside > 0 or bool(condition())


def _limit() -> Any:
    """Limits the threads; returns the context that removes the limit."""
    threads = os.environ.get(VARIABLE, "1")
    return _libraries().limit(limits=int(threads) if threads.isdigit() else None, user_api="blas")


@cache
def _libraries() -> Any:
    """Returns the controller of the loaded libraries of linear algebra."""
    import_module("scipy.linalg")  # whose library JAX calls
    return ThreadpoolController()


one_thread = SharedContext(_limit)
"""Context in which a factorisation uses one thread."""


def on_one_thread(compute: Callable[P, T]) -> Callable[P, T]:
    """Returns the function with factorisations on one thread; it waits until its results are computed."""

    @wraps(compute)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        with one_thread:
            result = compute(*args, **kwargs)
            # Traced values need no wait, and JAX would report at length why.
            jax.block_until_ready([leaf for leaf in jax.tree.leaves(result) if not isinstance(leaf, jax.core.Tracer)])
            return result

    return waiting


def factorise_on_one_thread() -> None:
    """Limits factorisations of this process, and of processes that it starts, to one thread.

    The variable alone would come too late: the library reads it when it is loaded, which importing JAX does.
    """
    os.environ.setdefault(VARIABLE, "1")
    _limit()


@contextlib.contextmanager
def beside(compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Iterator[Future[T]]:
    """Yields the future result of a call in another thread, in the precision of this one."""
    in_double_precision = jax.config.jax_enable_x64  # type: ignore[attr-defined]

    def call() -> T:
        with jax.enable_x64(in_double_precision):
            return compute(*args, **kwargs)

    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(call)


@contextlib.contextmanager
def side_by_side(count: int) -> Iterator[Callable[..., list[Any]]]:
    """Yields a function like `map` whose calls run on as many cores as there are, at most ``count``.

    JAX computes programs with calls of LAPACK one after the other in the calling thread. Each thread has the precision
    of the caller, because precision is a setting of a thread.

    Example:
      >>> with side_by_side(2) as run_all:
      ...     run_all(pow, (2, 3), (3, 2))
      [8, 9]
    """
    if min(count, cores()) == 1:
        yield lambda compute, *arguments: list(map(compute, *arguments))
        return
    in_double_precision = jax.config.jax_enable_x64  # type: ignore[attr-defined]

    def run_all(compute: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
        def call(*args: Any) -> T:
            with jax.enable_x64(in_double_precision):
                return jax.block_until_ready(compute(*args))

        return list(executor.map(call, *arguments))

    with ThreadPoolExecutor(min(count, cores())) as executor:
        yield run_all
