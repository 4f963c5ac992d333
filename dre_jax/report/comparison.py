"""Comparing methods run by run: regret and rank, as HPO-B computes them.

A run is one task from one initial design. Averages come in two kinds: "runs" pools all runs, as HPO-B does, so a search
space weighs as much as it has runs; "spaces" averages within each search space first, so all weigh the same. Each has a
standard error of its own, in which the tasks are the random draw: from all tasks for "runs", and within each search
space for "spaces", whose search spaces are fixed. The second error therefore says how other tasks of the same search
spaces would differ, not how other search spaces would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from dre_jax.checks import one_of
from dre_jax.data import Results
from dre_jax.errors import DataError

DECIMALS = 8
"""Decimals to which regret is rounded before it is ranked, as in HPO-B."""

Over = Literal["runs", "spaces"]
Run = tuple[str, str, str]


class WinTieLoss(NamedTuple):
    """One method against another, counted in runs."""

    wins: int
    ties: int
    losses: int


class Comparison(NamedTuple):
    """Methods on the runs that all of them have."""

    methods: tuple[str, ...]
    """Names, in the order of the arguments."""
    runs: tuple[Run, ...]
    """Search space, dataset and seed of each run."""
    regret: npt.NDArray[np.float64]
    """f64[methods, runs, T + 1]: 1 - incumbent."""
    missing: dict[str, int]
    """Method -> number of runs that it lacks and another method has."""
    dropped: int
    """Number of runs that are left out because some method lacks them."""
    trials: dict[str, int]
    """Method -> trials of its longest run, before all runs were cut to the shortest."""

    @property
    def n_trials(self) -> int:
        """T."""
        return self.regret.shape[2] - 1

    @property
    def tasks(self) -> tuple[tuple[str, str], ...]:
        """Search space and dataset of each run."""
        return tuple(run[:2] for run in self.runs)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Search spaces in the order of the runs, each once."""
        return tuple(dict.fromkeys(run[0] for run in self.runs))

    @property
    def counts(self) -> list[tuple[int, str]]:
        """Numbers of methods, runs, tasks, search spaces and trials, each with its word."""
        numbers = {
            "method": len(self.methods),
            "run": len(self.runs),
            "task": len(set(self.tasks)),
            "search space": len(self.spaces),
            "trial": self.n_trials,
        }
        return [(number, _plural(number, word)) for word, number in numbers.items()]

    def left_out(self) -> list[str]:
        """One line for each kind of run or trial that was left out, without a full stop."""
        lines = []
        if self.dropped:
            lacking = ", ".join(f"{name} lacks {count}" for name, count in self.missing.items() if count)
            share = f"{self.dropped} of {pluralize(self.dropped + len(self.runs), 'run')}"
            lines.append(f"{share} left out, as not every method has them: {lacking}")
        longer = [f"{name} has {trials}" for name, trials in self.trials.items() if trials > self.n_trials]
        if longer:
            lines.append(f"all runs cut to {pluralize(self.n_trials, 'trial')}, the shortest: {', '.join(longer)}")
        return lines

    def of_space(self, name: str) -> Comparison:
        """The runs of one search space; the counts of runs that were left out stay as they are.

        Raises:
          ConfigError: for a search space without runs.
        """
        one_of("the search space", name, self.spaces)
        indices = [i for i, run in enumerate(self.runs) if run[0] == name]
        return self._replace(runs=tuple(self.runs[i] for i in indices), regret=self.regret[:, indices])

    def rounded_regret(self) -> npt.NDArray[np.float64]:
        """f64[methods, runs, T + 1]: regret to 8 decimals, which decides between methods."""
        return np.round(self.regret, DECIMALS)

    def ranks(self) -> npt.NDArray[np.float64]:
        """f64[methods, runs, T + 1]: ranks per run and trial of the regret to 8 decimals; 1 is best, ties share."""
        return stats.rankdata(self.rounded_regret(), method="average", axis=0)

    def by_task(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """f64[methods, tasks, T + 1]: the mean over each task's designs of f64[methods, runs, T + 1]."""
        return np.stack([values[:, runs].mean(axis=1) for runs in _members(self.tasks)], axis=1)

    def average_regret(self, over: Over = "runs") -> npt.NDArray[np.float64]:
        """f64[methods, T + 1]: over all runs pooled, or over search spaces."""
        return self._average(self.regret, over)

    def average_rank(self, over: Over = "runs") -> npt.NDArray[np.float64]:
        """f64[methods, T + 1]: mean of `ranks` over all runs pooled, or over search spaces."""
        return self._average(self.ranks(), over)

    def standard_error(self, over: Over = "runs") -> npt.NDArray[np.float64]:
        """f64[methods, T + 1], of `average_regret`.

        The runs of a task are not independent, so the tasks are the random draw. The error of a mean over the runs of t
        tasks is that of a ratio: sqrt(t / (t - 1) * sum over tasks of (sum of the task's deviations from the mean)^2) /
        runs. With equally many runs a task it is the standard deviation of the tasks' means over sqrt(t). Over search
        spaces it is the error of a stratified mean: sqrt(sum of the squared errors of the spaces) / spaces. NaN where
        all runs, or all of one of the search spaces, are of one task. Source: Cochran, Sampling Techniques (1977),
        chapters 5 and 6.
        """
        return self._error(self.regret, over)

    def rank_error(self, over: Over = "runs") -> npt.NDArray[np.float64]:
        """f64[methods, T + 1], of `average_rank`, like `standard_error`."""
        return self._error(self.ranks(), over)

    def win_tie_loss(self, method: str, trial: int) -> dict[str, WinTieLoss]:
        """Compares a method with each other one after some trials, in runs; regrets equal to 8 decimals are a tie.

        Raises:
          ConfigError: for an unknown method.
        """
        one_of("the method", method, self.methods)
        regret = self.rounded_regret()[:, :, trial]
        method_regret = regret[self.methods.index(method)]
        return {
            name: WinTieLoss(
                int((method_regret < other).sum()),
                int((method_regret == other).sum()),
                int((method_regret > other).sum()),
            )
            for name, other in zip(self.methods, regret, strict=True)
            if name != method
        }

    def differences(self, reference: str) -> Comparison:
        """This comparison, with the reference's regret in the same run subtracted from every regret.

        Its averages are paired differences, which have less error than differences of averages: the tasks' own
        difficulty is in both. Positive: more regret than the reference.

        Raises:
          ConfigError: for an unknown method.
        """
        one_of("the method", reference, self.methods)
        return self._replace(regret=self.regret - self.regret[self.methods.index(reference)])

    def _groups(self, over: Over) -> list[list[int]]:
        """Runs by group; the mean of each group counts once."""
        return _members([run[0] for run in self.runs]) if over == "spaces" else [list(range(len(self.runs)))]

    def _average(self, values: npt.NDArray[np.float64], over: Over) -> npt.NDArray[np.float64]:
        return np.mean([values[:, runs].mean(axis=1) for runs in self._groups(over)], axis=0)

    def _error(self, values: npt.NDArray[np.float64], over: Over) -> npt.NDArray[np.float64]:
        groups = self._groups(over)
        errors = [_error_of_mean(values[:, runs], [self.tasks[i] for i in runs]) for runs in groups]
        return np.sqrt(np.square(errors).sum(axis=0)) / len(groups)


def _plural(number: int, word: str) -> str:
    return word if number == 1 else f"{word}s"


def pluralize(number: int, word: str) -> str:
    """A number with its word.

    >>> pluralize(1, "run"), pluralize(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {_plural(number, word)}"


def _members(labels: Sequence[object]) -> list[list[int]]:
    """Positions of each label, in order of appearance."""
    members: dict[object, list[int]] = {}
    for i, label in enumerate(labels):
        members.setdefault(label, []).append(i)
    return list(members.values())


def _error_of_mean(values: npt.NDArray[np.float64], tasks: Sequence[object]) -> npt.NDArray[np.float64]:
    """f64[methods, T + 1], of the mean of f64[methods, runs, T + 1]; see `Comparison.standard_error`."""
    deviation = values - values.mean(axis=1, keepdims=True)
    by_task = np.array([deviation[:, runs].sum(axis=1) for runs in _members(tasks)])
    count = len(by_task)
    if count < 2:
        return np.full(by_task.shape[1:], np.nan)
    return np.sqrt(count / (count - 1) * np.square(by_task).sum(axis=0)) / values.shape[1]


def compare(results: Mapping[str, Results]) -> Comparison:
    """Aligns methods on their common runs, sorted and cut to the shortest.

    Args:
      results: by method name.

    Raises:
      DataError: without results, or without a run that all methods have.

    Example:
      >>> from dre_jax.data import add_trace
      >>> first = add_trace(Results(), "svm", "wine", "test0", [0.5, 1.0])
      >>> second = add_trace(Results(), "svm", "wine", "test0", [0.5, 0.7])
      >>> compare({"first": first, "second": second}).average_rank()[:, 1].tolist()
      [1.0, 2.0]
    """
    if not results:
        raise DataError("a comparison needs at least one method, but got none")
    runs = {name: {run[:3]: run[3] for run in result.runs()} for name, result in results.items()}
    all_runs = sorted(set().union(*runs.values()))
    keys = [key for key in all_runs if all(key in by_run for by_run in runs.values())]
    if not keys:
        raise DataError(f"the methods must have a run in common, but {', '.join(results)} have none")
    trials = {name: max(len(by_run[key]) for key in keys) - 1 for name, by_run in runs.items()}
    length = min(len(by_run[key]) for by_run in runs.values() for key in keys)
    return Comparison(
        methods=tuple(results),
        runs=tuple(keys),
        regret=np.array([[1.0 - by_run[key][:length] for key in keys] for by_run in runs.values()]),
        missing={name: sum(key not in by_run for key in all_runs) for name, by_run in runs.items()},
        dropped=len(all_runs) - len(keys),
        trials=trials,
    )
