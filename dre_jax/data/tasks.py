"""TaskTable: the rows of many tasks, flat on the device, each task sorted by response once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.data.spaces import Task
from dre_jax.errors import DataError
from dre_jax.runtime.arrays import namespace

TAIL_REACH = 1e4
"""Bound of responses below the median, in distances from the median to the best."""


class SortedTask(NamedTuple):
    """One task on the host, best response first."""

    x: np.ndarray
    """f32[n, D]"""
    response: np.ndarray
    """f32[n], scaled to [0, 1] by the least and the largest after `clip_tail`, 0.5 throughout if constant."""
    float32_residual: np.ndarray
    """f32[n], the part of the response that float32 rounds off."""
    level: np.ndarray
    """i32[n]: 0 for the best response, equal exactly where the responses are equal in float64."""
    order: np.ndarray
    """i64[n]: the row of the task's file that each row came from."""


class TaskTable(NamedTuple):
    """A search space's tasks as flat arrays, T tasks of R rows in all, without padding."""

    x: jax.Array
    """f32[R, D]"""
    response: jax.Array
    """f32[R], see `SortedTask`; best first within a task."""
    level: jax.Array
    """i32[R]: tie groups, counted from 0 within a task."""
    start: jax.Array
    """i32[T]: first row of each task."""
    size: jax.Array
    """i32[T]: rows of each task."""
    n_tasks: jax.Array
    """i32 scalar: number of filled slots, the first of the T slots; all, unless the table was padded."""

    @property
    def n_columns(self) -> int:
        """D."""
        return self.x.shape[-1]


def unit_scale(y: np.ndarray) -> np.ndarray:
    """Min-max of responses f64[n] to [0, 1] in float64, as HPO-B's handler does it; 0.5 throughout if constant."""
    low, high = float(y.min()), float(y.max())
    # Halving first keeps the spread finite when the responses span the whole range of a float.
    spread = high / 2.0 - low / 2.0
    return (y / 2.0 - low / 2.0) / spread if spread > 0 else np.full(y.shape, 0.5)


def clip_tail(y: np.ndarray) -> np.ndarray:
    """Clips responses f64[n] that are far below the others, so that float32 distinguishes the others on one scale.

    The bound is 10,000 times as far below the median as the best is above it; see `tie_levels` for the order of those
    below it.

    Example:
      >>> clip_tail(np.array([-1e30, 1.0, 2.0, 3.0])).tolist()
      [-14998.5, 1.0, 2.0, 3.0]
    """
    with np.errstate(over="ignore"):  # of responses that span the range of a float, none is clipped
        median, best = np.median(y / 4.0), y.max() / 4.0
        return np.maximum(y, 4.0 * (median - TAIL_REACH * (best - median))) if best > median else y


def tie_levels(y: np.ndarray) -> np.ndarray:
    """Dense rank of responses, 0 the best, ties equal; f64[n] -> i32[n]."""
    return np.unique(-y, return_inverse=True)[1].reshape(y.shape).astype(np.int32)


def spaced_rows(n: Any, most: Any, size: int | None = None) -> Any:
    """Returns at most ``most`` of n row numbers, evenly spaced from the first to the last.

    With a size, the array i32[size] has the row numbers first, and numbers without meaning after them; then n may be an
    array of JAX.

    Example:
      >>> spaced_rows(10, 4).tolist(), spaced_rows(3, 4).tolist(), spaced_rows(0, 4).tolist()
      ([0, 3, 6, 9], [0, 1, 2], [])
    """
    xp = np if isinstance(n, int) else namespace(n)
    numbers = np.arange(min(n, most) if size is None else size, dtype=np.int32)
    spacing = xp.maximum((n - 1) / xp.maximum(most - 1, 1), 1.0)
    return xp.round(numbers.astype(spacing.dtype) * spacing).astype(np.int32)


def sort_responses(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of f64[n] by response, best first, ties in the order of the file.

    Returns:
      Row numbers i64[n]; responses f64[n] by `clip_tail` and `unit_scale`, and levels i32[n] by `tie_levels`, both in
      that order.

    Example:
      >>> [part.tolist() for part in sort_responses(np.array([1.0, 3.0, 1.0]))]
      [[1, 0, 2], [1.0, 0.0, 0.0], [0, 1, 1]]
    """
    order = np.argsort(-y, kind="stable")
    return order, unit_scale(clip_tail(y))[order], tie_levels(y)[order]


def sort_task(task: Task) -> SortedTask:
    """Sorts a task by response, best first, ties in the order of the file."""
    order, scaled_y, level = sort_responses(task.y)
    response = scaled_y.astype(np.float32)
    residual = (scaled_y - response).astype(np.float32)
    return SortedTask(np.asarray(task.X, np.float32)[order], response, residual, level, order)


def lay_out(tasks: Mapping[str, Task]) -> tuple[np.ndarray, np.ndarray]:
    """First row and number of rows of each task, i32[T] each, where tasks lie end to end.

    Raises `DataError` without tasks, with different numbers of columns, or with more rows than an int32 can count.
    """
    if not tasks:
        raise DataError("a task table needs at least one task, but got none")
    columns = {task.n_columns for task in tasks.values()}
    if len(columns) > 1:
        raise DataError(f"the tasks of a search space must have one column count, but got {sorted(columns)}")
    sizes = np.array([task.n_rows for task in tasks.values()], np.int64)
    if sizes.sum() >= 2**31:
        raise DataError(f"a task table holds fewer than 2**31 rows, but got {sizes.sum()}")
    return (np.cumsum(sizes) - sizes).astype(np.int32), sizes.astype(np.int32)


def build_table(tasks: Mapping[str, Task]) -> TaskTable:
    """Lays tasks out flat on the device, in the order of the mapping.

    Args:
      tasks: tasks of one search space, by name.

    Raises:
      DataError: without tasks, with different numbers of columns, or with more rows than an int32 can count.
    """
    return jax.device_put(build_host_table(tasks))


def build_host_table(tasks: Mapping[str, Task]) -> TaskTable:
    """Returns `build_table` as NumPy arrays."""
    start, size = lay_out(tasks)
    parts = [sort_task(task) for task in tasks.values()]
    columns: dict[str, Any] = {
        "x": np.concatenate([part.x for part in parts]),
        "response": np.concatenate([part.response for part in parts]),
        "level": np.concatenate([part.level for part in parts]),
        "start": start,
        "size": size,
        "n_tasks": np.int32(len(size)),
    }
    return TaskTable(**columns)
