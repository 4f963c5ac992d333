"""Rows of tasks and initial designs, drawn by streams that depend on names only."""

from __future__ import annotations

import zlib

import numpy as np

from .spaces import SPACES, sample

SEED = 7
DECIMALS = 4
"""Rows are rounded before they are evaluated, so that the stored row is the configuration that gave the response."""
SHARED, FRESH = 56, 200
"""Rows of a task: configurations that every task of the space has, and ones of its own."""
DESIGNS, DESIGN_ROWS = 5, 5


def stream(*names: str) -> np.random.Generator:
    """A random stream that does not depend on the order in which things are made."""
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def task_rows(name: str, task: str, shared: int = SHARED, fresh: int = FRESH) -> list[list[float]]:
    """The rows of a task in random order: the order says nothing of the response, nor of which ones are shared."""
    rng, rows = stream(name, task), list[list[float]]()
    for count, source in ((shared, stream(name, "shared")), (shared + fresh, rng)):
        while len(rows) < count:
            row = np.round(SPACES[name].encode(sample(SPACES[name], source)), DECIMALS).tolist()
            if row not in rows:
                rows.append(row)
    return [rows[i] for i in rng.permutation(len(rows))]


def designs(space: str, task: str, count: int) -> dict[str, list[int]]:
    rng = stream(space, task, "designs")
    return {f"test{i}": rng.choice(count, DESIGN_ROWS, replace=False).tolist() for i in range(DESIGNS)}
