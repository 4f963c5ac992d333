"""Past tasks, a table, histories and candidates of a few rows, on which methods are checked."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from dre_jax.data import SearchSpace, Task
from dre_jax.data.tasks import sort_task
from dre_jax.search.history import Candidates, History, make_history
from dre_jax.search.loop import SearchTask

Floats = npt.NDArray[np.float64]

N_ROWS, N_SLOTS = 16, 21
"""Numbers of candidates and of their slots."""
N_TRIALS = 3
DESIGN = (13, 4, 9)
"""Rows that a run evaluates at the start."""
CAPACITY = len(DESIGN) + N_TRIALS - 1
"""Slots of a history."""


def past_tasks(n_columns: int) -> SearchSpace:
    """Returns a search space with three training tasks: a usual one, one with equal responses, one with equal rows."""
    rng = np.random.default_rng(1)
    sizes = {"usual": 30, "flat": 9, "copies": 5}
    x = {name: rng.uniform(size=(n, n_columns)).astype(np.float32) for name, n in sizes.items()}
    x["copies"][:] = x["copies"][0]
    y = {name: rng.normal(size=n) for name, n in sizes.items()}
    y["flat"][:] = 3.0
    return SearchSpace("hard", train={name: Task(name, x[name], y[name]) for name in sizes})


def table(n_columns: int, n_slots: int = N_ROWS, garbage: float = np.nan) -> SearchTask:
    """Returns a table of 16 rows, some with tied responses; further slots hold garbage."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(N_ROWS, n_columns)).astype(np.float32)
    rows, empty = sort_task(Task("new", x, np.round(rng.normal(size=N_ROWS), 1))), n_slots - N_ROWS
    fields = (
        np.pad(rows.x, ((0, empty), (0, 0)), constant_values=garbage),
        np.pad(rows.response, (0, empty), constant_values=garbage),
        np.pad(rows.level, (0, empty)),
        np.arange(n_slots) < N_ROWS,
    )
    return SearchTask(*jax.device_put(fields))


def usual_case(n_columns: int, garbage: float = 0.0) -> tuple[History, Candidates]:
    """Returns a history of four trials and eleven candidates; the other slots hold garbage."""
    x, response = np.random.default_rng(7).uniform(size=(4, n_columns)), np.array([0.25, 1.0, 0.5, 0.75])
    history = jax.tree.map(np.array, make_history(x, response, CAPACITY))
    for field in (history.x, history.response, history.level):
        field[4:] = garbage
    where = (np.arange(N_SLOTS) % 3 > 0) & (np.arange(N_SLOTS) < N_ROWS)
    rows = np.asarray(table(n_columns, N_SLOTS).x)
    return jax.device_put(history), _candidates(np.where(where[:, None], rows, np.float32(garbage)), where)


def degenerate_cases(n_columns: int) -> Iterator[tuple[str, History, Candidates]]:
    """Yields histories and candidates of which a method may make nothing but must make numbers, with their names."""
    rng = np.random.default_rng(0)
    shape = (CAPACITY, n_columns)
    x, y, new = rng.uniform(size=shape), rng.uniform(size=CAPACITY), rng.uniform(size=(N_SLOTS, n_columns))
    equal, tied, position = np.full(CAPACITY, 0.5), np.arange(CAPACITY) // 3, np.arange(CAPACITY)
    copies: dict[int, Floats] = {n: np.repeat(x[:1], n, axis=0) for n in (CAPACITY, N_SLOTS)}
    cases = {
        "no trial": (x[:0], y[:0], new),
        "one trial": (x[:1], y[:1], new),
        "equal rows": (copies[CAPACITY], y, copies[N_SLOTS]),
        "equal rows and responses": (copies[CAPACITY], equal, new),
        "equal responses": (x, equal, new),
        "tied responses": (x, tied, new),
        "constant columns": (np.zeros(shape), y, np.zeros((N_SLOTS, n_columns))),
        "candidates that were tried": (x, y, x[np.arange(N_SLOTS) % CAPACITY]),
        "a far outlier": (x, np.where(position == 2, 0.0, 1.0 - 1e-7 * y), new),
    }
    for name, (points, responses, rows) in cases.items():
        candidates = _candidates(rows.astype(np.float32), np.arange(N_SLOTS) < N_SLOTS - 3)
        yield name, make_history(points, responses, CAPACITY), candidates


def _candidates(x: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> Candidates:
    return Candidates(*jax.device_put((x, where)))
