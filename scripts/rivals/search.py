"""One search of a rival, which is the same for all."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.space.space import Params
from rivals.problems import Problem, Rival, Task

Maker = Callable[[Problem, Sequence[Params] | None, int], Rival]


class Search(NamedTuple):
    """What a rival found."""

    values: list[float]
    """Of all trials in their order, those of the design first; NaN for trials that time did not suffice for."""
    trials: int
    """How many were asked for after the design; a table may have fewer rows."""
    setup_seconds: float
    """From the problem to a rival that knows the design; tasks that share past studies may learn from them once."""
    seconds: list[float]
    """Of each suggestion."""


def search(task: Task, make: Maker, seed: int, trials: int, limit: float = math.inf) -> Search:
    """Returns what a rival finds in as many trials after the design, or until it has taken a limit of seconds.

    A configuration of a table that is no row, or was evaluated, stands for the nearest row that was not.
    """
    table = task.table
    left = np.ones(0 if table is None else len(table.rows), bool)

    def observe(params: Params) -> tuple[Params, float]:
        if table is None:
            assert task.evaluate is not None
            return params, float(task.evaluate([params])[0])
        row = table.nearest(params, left)
        left[row] = False
        return table.rows[row], float(table.values[row])

    start, values, seconds = time.perf_counter(), list[float](), list[float]()
    rival = make(task.problem, None if table is None else table.rows, seed)
    for params in task.design:
        evaluated, value = observe(params)
        rival.tell(evaluated, value)
        values.append(value)
    setup_seconds = time.perf_counter() - start
    for _ in range(trials if table is None else min(trials, int(left.sum()))):
        if setup_seconds + sum(seconds) > limit:
            values.append(math.nan)
            continue
        start = time.perf_counter()
        params = rival.ask()
        seconds.append(time.perf_counter() - start)
        evaluated, value = observe(params)
        rival.tell(evaluated, value)
        values.append(value)
    return Search(values, trials, setup_seconds, seconds)
