"""Tasks from folders in HPO-B's layout: the tasks and past tasks of `compare_random`, as rivals see them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from compare_random import parts_of, with_past
from derive_data import folder

from dre_jax.data import SearchSpace
from dre_jax.data.hpob import load_space
from dre_jax.tuning import Evaluated
from rivals.problems import Problem, Table, Task
from rivals.table_spaces import configurations, table_space


@dataclass(frozen=True)
class TableFamily:
    """A search space of a folder."""

    name: str
    data: str
    """The folder, or "bundled"."""
    n_tasks: int
    """Maximum number of tasks that are searched."""
    n_studies: int
    """Maximum number of past studies."""
    n_trials: int
    """Number of trials of each."""
    n_rows: int
    """Maximum number of rows of a task."""

    def groups(self) -> range:
        """Returns the numbers of the groups of tasks that share their past."""
        return range(min(len(self._parts()), self.n_tasks))

    def tasks(self, group: int, seed: int) -> list[Task]:
        """Returns the tasks of a group, with the design of a seed from 0 to 4."""
        return list(self._tasks(self._parts()[group], seed))[: self.n_tasks]

    def samples(self) -> dict[str, np.ndarray]:
        """Returns the values of all rows, by task."""
        tables = {task.name: task.table for group in self.groups() for task in self.tasks(group, 0)}
        return {name: table.values for name, table in tables.items() if table is not None}

    def _parts(self) -> list[SearchSpace]:
        return list(parts_of(load_space(folder(self.data), self.name)))

    def _tasks(self, part: SearchSpace, seed: int) -> Iterator[Task]:
        part = with_past(part, "own", part, self.n_rows, n_tasks=self.n_studies, n_trials=self.n_trials)
        space = table_space([task.X for split in (part.train, part.test) for task in split.values()])
        past = {
            name: [Evaluated(params, float(y)) for params, y in zip(configurations(space, task.X), task.y, strict=True)]
            for name, task in part.train.items()
        }
        problem = Problem(space, past)
        for name, task in part.test.items():
            table = Table(space, configurations(space, task.X), np.asarray(task.y, np.float64))
            design = [table.rows[row] for row in part.designs[name][f"test{seed}"]]
            yield Task(name, problem, design, table=table)
