"""Differences between two methods: paired tests, an interval over tasks, and a test of equivalence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dre_jax.report.statistics import signed_rank

Runs = Mapping[tuple[str, str, str], np.ndarray]
"""(space, dataset, design) -> f64[T + 1] incumbents."""

RESAMPLES = 10_000


class Paired(NamedTuple):
    """Differences of regret after so many trials, first minus second: negative means that the first is better."""

    trial: int
    runs: int
    tasks: int
    trainings: int
    """A space and a design: their runs share the luck of one training."""
    equal_runs: int
    """Runs with the same regret, to 8 decimals."""
    regret: tuple[float, float]
    """Mean regret of each."""
    difference: float
    """Mean over runs."""
    interval: tuple[float, float]
    """95 %, tasks resampled with all their runs."""
    p_runs: float
    """`signed_rank` over runs; below, over tasks and over meta-trainings, whose runs are averaged first: they are not
    independent."""
    p_tasks: float
    p_trainings: float
    equivalent: bool
    """True where the 90 % interval lies within the margin: two one-sided tests at 5 %."""
    smallest_margin: float
    """The margin from which on they would be equivalent."""

    def told(self, margin: float) -> str:
        """A line about it."""
        return (
            f"{self.runs:>3} runs at {self.trial:>2}: regret {self.regret[0]:.4f} and {self.regret[1]:.4f}, "
            f"difference {self.difference:+.4f} [{self.interval[0]:+.4f}, {self.interval[1]:+.4f}], "
            f"p {self.p_runs:.3f} over runs, {self.p_tasks:.3f} over {self.tasks} tasks, "
            f"{self.p_trainings:.3f} over {self.trainings} meta-trainings; {self.equal_runs} equal; "
            f"{'' if self.equivalent else 'not '}equivalent within {margin} (from {self.smallest_margin:.4f} on)"
        )


def resampled_means(differences: np.ndarray, tasks: np.ndarray, seed: int = 0) -> np.ndarray:
    """Means of the differences when tasks are drawn with replacement, each with all its runs; f64[RESAMPLES]."""
    numbers = np.unique(tasks, return_inverse=True)[1]
    total, count = np.bincount(numbers, weights=differences), np.bincount(numbers)
    drawn = np.random.default_rng(seed).integers(len(count), size=(RESAMPLES, len(count)))
    return total[drawn].sum(axis=1) / count[drawn].sum(axis=1)


def _means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mean of each group; f64[methods, runs] -> f64[methods, groups]."""
    numbers = np.unique(groups, return_inverse=True)[1]
    return np.array([np.bincount(numbers, weights=row) for row in values]) / np.bincount(numbers)


def paired(first: Runs, second: Runs, trial: int, margin: float) -> Paired:
    """Compares two methods on the runs that both have."""
    keys = sorted(set(first) & set(second))
    regret = np.array([[1.0 - runs[key][trial] for key in keys] for runs in (first, second)])
    differences = regret[0] - regret[1]
    tasks, trainings = (np.array([f"{key[0]} {key[part]}" for key in keys]) for part in (1, 2))
    by_task, by_training = _means(regret, tasks), _means(regret, trainings)
    least, low, high, most = map(float, np.quantile(resampled_means(differences, tasks), [0.025, 0.05, 0.95, 0.975]))
    smallest = max(abs(low), abs(high))
    return Paired(
        trial=trial,
        runs=len(keys),
        tasks=by_task.shape[1],
        trainings=by_training.shape[1],
        equal_runs=int((np.abs(differences) < 5e-9).sum()),
        regret=(float(regret[0].mean()), float(regret[1].mean())),
        difference=float(differences.mean()),
        interval=(least, most),
        p_runs=signed_rank(*regret),
        p_tasks=signed_rank(*by_task),
        p_trainings=signed_rank(*by_training),
        equivalent=smallest < margin,
        smallest_margin=smallest,
    )
