"""Tables of tasks in the host's memory or in memory-mapped files, from which the rows of lists are gathered."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data.sampling import ListRows
from dre_jax.data.spaces import Task
from dre_jax.data.tasks import TaskTable, lay_out, sort_responses


class GatheredRows(NamedTuple):
    """The rows of sampled lists, K of the support, then Q of the query; batch dimensions may stand in front."""

    x: Array
    """f32[..., K + Q, D]"""
    response: Array
    """f32[..., K + Q], see `TaskTable`."""
    level: Array
    """i32[..., K + Q], likewise."""
    support_where: Array
    """bool[..., K], the filled slots."""
    query_where: Array
    """bool[..., Q]"""

    def table(self) -> TaskTable:
        """Returns a table of these rows alone, where each list is a task."""
        length, n_columns = self.x.shape[-2:]
        start = jnp.arange(0, self.response.size, length, dtype=jnp.int32)
        x, response, level = self.x.reshape(-1, n_columns), self.response.reshape(-1), self.level.reshape(-1)
        return TaskTable(x, response, level, start, jnp.full_like(start, length), jnp.int32(start.size))

    def rows(self) -> ListRows:
        """Returns the lists as row numbers in `table`."""
        n_support, shape = self.support_where.shape[-1], self.response.shape
        rows = jnp.arange(self.response.size, dtype=jnp.int32).reshape(shape)
        return ListRows(rows[..., :n_support], self.support_where, rows[..., n_support:], self.query_where)


class HostTable:
    """A `TaskTable` whose features stay where the tasks have them: it takes twelve bytes a row beside them."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        """Sorts the responses of tasks; features are read when they are drawn, in any dtype that NumPy casts.

        Raises `DataError` as `build_table`.
        """
        self.start, self.size = lay_out(tasks)
        self._x = [task.X for task in tasks.values()]
        n_rows = int(self.size.sum())
        self._order, self._level = np.empty(n_rows, np.int32), np.empty(n_rows, np.int32)
        self._response = np.empty(n_rows, np.float32)
        for task, start, size in zip(tasks.values(), self.start, self.size, strict=True):
            rows = slice(start, start + size)
            self._order[rows], self._response[rows], self._level[rows] = sort_responses(task.y)

    def gather(self, rows: ListRows) -> GatheredRows:
        """Returns the rows of lists as NumPy arrays; all rows of a list belong to one task."""
        list_rows = np.concatenate([rows.support, rows.query], axis=-1)
        flat = list_rows.reshape(-1, list_rows.shape[-1])
        x = np.empty((*flat.shape, self._x[0].shape[1]), np.float32)
        task = np.searchsorted(self.start, flat[:, 0], side="right") - 1
        # `take` is several times as fast as indexing, and lets other threads go on.
        for number in np.unique(task):
            task_rows = np.flatnonzero(task == number)
            x[task_rows] = self._x[number].take(self._order.take(flat[task_rows]), axis=0)
        read: Any = x.reshape(*list_rows.shape, -1), self._response.take(list_rows), self._level.take(list_rows)
        where: Any = rows.support_where, rows.query_where
        return GatheredRows(*read, *where)
