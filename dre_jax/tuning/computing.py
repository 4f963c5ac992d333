"""What suggestions are computed in: programs that are kept, and factorisations on one thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from dre_jax.cache import programs_kept


class Shared:
    """A context that the first of several threads enters, and the last one leaves.

    Example:
      >>> @contextlib.contextmanager
      ... def told():
      ...     print("in")
      ...     yield
      ...     print("out")
      >>> shared = Shared(told)
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
        self._entered = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._entered.enter_context(self._make())
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._entered.close()


@contextlib.contextmanager
def _computing() -> Iterator[None]:
    with programs_kept(), _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    """The libraries of linear algebra that are loaded, the one among them that JAX calls on a CPU."""
    from threadpoolctl import ThreadpoolController

    import_module("scipy.linalg")  # whose library JAX calls
    return ThreadpoolController()


computing = Shared(_computing)
"""Within, JAX keeps what it compiles (see `dre_jax.cache`), and a factorisation on a CPU takes one thread.

OpenBLAS, which JAX calls there, starts a thread a core for each. Where something else works on these cores, as the
model that is tuned may, they wait for each other: a suggestion from 200 trials took 30 s in place of 1.3 s.
"""
