"""Comparing methods run by run: average regret and average rank, as HPO-B computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from dre_jax.data import Results
from dre_jax.errors import DataError


class Comparison(NamedTuple):
    """Methods on the runs that all of them have."""

    methods: tuple[str, ...]
    tasks: tuple[tuple[str, str], ...]
    """Search space and dataset of each run."""
    regret: npt.NDArray[np.float64]
    """f64[methods, runs, T + 1]: 1 - incumbent."""
    dropped: int
    """Runs that some method lacks."""

    @property
    def n_trials(self) -> int:
        """T."""
        return self.regret.shape[2] - 1

    def average_regret(self) -> npt.NDArray[np.float64]:
        """f64[methods, T + 1], over all runs."""
        return self.regret.mean(axis=1)

    def average_rank(self) -> npt.NDArray[np.float64]:
        """f64[methods, T + 1]: regret rounded to 8 decimals, ranked per run and trial with mean ties, over all runs."""
        return stats.rankdata(np.round(self.regret, 8), method="average", axis=0).mean(axis=1)

    def standard_error(self) -> npt.NDArray[np.float64]:
        """f64[methods, T + 1], of the average regret: over tasks, since the designs of a task are not independent."""
        by_task = np.stack(
            [
                self.regret[:, [i for i, t in enumerate(self.tasks) if t == task]].mean(axis=1)
                for task in sorted(set(self.tasks))
            ]
        )
        count = len(by_task)
        return by_task.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(by_task.shape[1:], np.nan)


def compare(results: Mapping[str, Results]) -> Comparison:
    """Lines methods up on their common runs, cut to the shortest.

    Args:
      results: by method name.

    Raises:
      DataError: without results, or without a run that all methods have.
    """
    if not results:
        raise DataError("a comparison needs at least one method, but got none")
    runs = {name: {run[:3]: run[3] for run in found.runs()} for name, found in results.items()}
    everywhere = set.intersection(*(set(found) for found in runs.values()))
    anywhere = set.union(*(set(found) for found in runs.values()))
    if not everywhere:
        raise DataError(f"the methods must have a run in common, but {', '.join(results)} have none")
    keys = sorted(everywhere)
    length = min(len(found[key]) for found in runs.values() for key in keys)
    regret = np.array([[1.0 - found[key][:length] for key in keys] for found in runs.values()])
    return Comparison(tuple(results), tuple(key[:2] for key in keys), regret, len(anywhere) - len(everywhere))


class Row(NamedTuple):
    """A method's line in a table."""

    method: str
    regret: list[float]
    error: list[float]
    rank: list[float]


def table(comparison: Comparison, at: Sequence[int]) -> list[Row]:
    """Mean regret, its standard error over tasks, and average rank after the trials given."""
    wanted = list(at)
    parts = (comparison.average_regret(), comparison.standard_error(), comparison.average_rank())
    return [Row(name, *(part[i, wanted].tolist() for part in parts)) for i, name in enumerate(comparison.methods)]
