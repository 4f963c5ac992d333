"""Trials that a method gets where there are too many: slots of arrays of NumPy or JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from dre_jax.data.tasks import spaced_rows
from dre_jax.runtime.arrays import namespace
from dre_jax.tuning.trials.responses import check_numbers


def spaced_slots(where: Any, most: Any, size: int) -> tuple[Any, Any]:
    """Returns at most ``most`` filled slots of bool[n], evenly spaced, in an array i32[size], and which of it exist.

    Example:
      >>> [part.tolist() for part in spaced_slots(np.array([True, True, False, True, True]), 3, 4)]
      [[0, 3, 4, 0], [True, True, True, False]]
    """
    xp = namespace(where)
    total = xp.sum(where, dtype=np.int32)
    filled = np.arange(size, dtype=np.int32) < xp.minimum(total, most)
    positions = xp.where(filled, spaced_rows(total, most, size), 0)
    return xp.argsort(~where, stable=True).astype(np.int32)[positions], filled


def select_rows(scores: Any, where: Any, room: Any) -> tuple[Any, Any]:
    """Returns slots of the trials that a method gets, first in an array i32[C], in order of time, and their number.

    These are all trials bool[C] if there is room, or the best quarter by scores f[C], and others evenly spaced in time.
    With the better half and the latest, most trials of a long search are at the optimum, where they differ by little,
    and the likelihood of a Gaussian process has its maximum at length scales that fit none of the early trials.

    Example:
      >>> rows, n = select_rows(np.array([1.0, 5.0, 2.0, 3.0, 4.0, 0.0]), np.arange(6) < 5, 3)
      >>> rows[:n].tolist()
      [0, 1, 4]
    """
    xp, numbers, absent = namespace(scores), np.arange(len(scores), dtype=np.int32), np.int32(len(scores))
    n, n_top = xp.sum(where, dtype=np.int32), xp.maximum(room // 4, 1)
    order = xp.argsort(xp.where(where, -scores, xp.inf), stable=True).astype(np.int32)
    is_top = where & (xp.argsort(order, stable=True).astype(np.int32) < n_top)
    spaced, is_spaced = spaced_slots(where & ~is_top, room - n_top, len(scores))
    top = xp.where(numbers < xp.minimum(n_top, n), order, absent)
    rows = xp.sort(xp.concatenate([top, xp.where(is_spaced, spaced, absent)]))[: len(scores)]
    rows = xp.where(n <= room, xp.sort(xp.where(where, numbers, absent)), rows)
    return rows, xp.minimum(n, room)


def select_slots(scores: Any, where: Any, room: Any, size: int) -> tuple[Any, Any, Any]:
    """Returns the slots that `select_rows` selects, in an array i32[size], which of it exist, and their number."""
    xp = namespace(scores)
    rows, n = select_rows(scores, where, room)
    rows = xp.pad(rows, (0, max(size - len(rows), 0)))[:size]
    return xp.minimum(rows, len(scores) - 1), np.arange(size, dtype=np.int32) < n, n


def select_trials(scores: np.ndarray, room: int) -> np.ndarray:
    """Returns the rows i32[m] of all of n trials, or of as many as there is room for, by scores f64[n].

    Raises `DataError` for NaN.
    """
    check_numbers(scores)
    rows, n = select_rows(scores, np.ones(len(scores), bool), room)
    selected: np.ndarray = rows[:n]
    return selected
