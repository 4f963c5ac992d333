"""The call that HPO-B's handler makes of a method: `observe_and_suggest`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.errors import DataError
from dre_jax.search.batch import bucket
from dre_jax.search.history import Candidates, make_history
from dre_jax.search.loop import FIRST_BUCKET, begin, jitted_suggest
from dre_jax.search.method import Method


class Suggester:
    """One run of a method, driven from outside: HPO-B's own handler can call it.

    The history and the candidates are padded to sizes that rarely change, so that few calls compile.

    Example:
      >>> from dre_jax.methods import RandomSearch
      >>> suggester = Suggester(RandomSearch(), None, seed=0)
      >>> index = suggester.observe_and_suggest(np.zeros((2, 3)), np.array([[0.1], [0.5]]), np.ones((4, 3)))
      >>> 0 <= index < 4
      True
    """

    def __init__(self, method: Method, params: Any = None, *, seed: int = 0) -> None:
        """A run of its own.

        Args:
          method: frozen and hashable.
          params: what the method's `fit` returned.
          seed: of the run; HPO-B's seeds want different ones.
        """
        self._method = method
        self._params = params
        self._key = jax.random.key(seed)
        self._state: Any = None

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any) -> int:
        """Index of the row of X_pen to evaluate next.

        Args:
          X_obs: [n, D], evaluated so far.
          y_obs: [n] or [n, 1], higher is better.
          X_pen: [m, D], not evaluated yet.

        Raises:
          DataError: for shapes that do not fit, NaN or infinity, or nothing to choose from.
        """
        pending = np.asarray(X_pen, np.float32)
        observed = np.asarray(X_obs, np.float32)
        if pending.ndim != 2 or len(pending) == 0:
            raise DataError(f"X_pen must be an array (m, D) of at least one row, but got shape {pending.shape}")
        if observed.ndim != 2 or observed.shape[1] != pending.shape[1]:
            raise DataError(f"X_obs and X_pen must have one column count, but got {observed.shape} and {pending.shape}")
        if not np.isfinite(pending).all():
            raise DataError("X_pen must hold finite numbers, but got NaN or infinity")
        n, m = len(observed), len(pending)
        history = make_history(observed, y_obs, capacity=capacity_for(n))
        # The pending rows shrink as the observed ones grow: their sum stays, and so does the padded size.
        padded = np.pad(pending, ((0, bucket(n + m) - m), (0, 0)))
        candidates = Candidates(jnp.asarray(padded), jnp.arange(len(padded)) < m)
        if self._state is None:
            self._state = begin(self._method, self._params, pending.shape[1], self._key)
        row, self._state = jitted_suggest(
            self._method, self._params, self._state, history, candidates, self._key, jnp.int32(n)
        )
        return int(row)


def capacity_for(n: int) -> int:
    """Slots of a history of n trials: 16, 32, 64 and so on."""
    capacity = FIRST_BUCKET
    while capacity < n:
        capacity *= 2
    return capacity
