"""Trainings: the trials of one configuration, each of which resumes the one before it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dre_jax.tuning.trials.trial import State, Trial


class Training(NamedTuple):
    """The training of a configuration from nothing, in the trials that paused and resumed it."""

    trials: tuple[Trial, ...]
    """In the order of their budgets."""

    @property
    def last(self) -> Trial:
        """The latest trial, whose state is that of the training."""
        return self.trials[-1]

    @property
    def state(self) -> State:
        """Running, paused, complete or failed."""
        return self.last.state

    @property
    def values(self) -> dict[float, float]:
        """The values of a single objective by budget, as `tell` got them."""
        return {trial.budget: trial.value for trial in self.trials if trial.budget and trial.value is not None}

    @property
    def latest_valued(self) -> Trial | None:
        """The latest trial with a value; None without any."""
        return next((trial for trial in reversed(self.trials) if trial.has_value), None)

    @property
    def reached(self) -> float:
        """The highest budget of a trial that has a value, 0 of none."""
        return max((trial.budget or 0.0 for trial in self.trials if trial.has_value), default=0.0)

    def with_objective(self, name: str) -> "Training":
        """Returns the training with one of several objectives as its value; see `Trial.with_objective`."""
        return Training(tuple(trial.with_objective(name) for trial in self.trials))

    def cost_at(self, budget: float) -> float | None:
        """Returns the cost of training to a budget, in proportion to the costs so far; None if none is known.

        Example:
          >>> first = Trial(0, {"x": 0.5}, "paused", 2.0, budget=1, cost=10.0)
          >>> Training((first, Trial(1, {"x": 0.5}, "paused", 1.0, budget=3, resumes=0, cost=26.0))).cost_at(9)
          108.0
        """
        known = [trial for trial in self.trials if trial.cost is not None]
        by_number = {trial.number: trial for trial in self.trials}
        spent = sum(spent_by(trial, by_number) for trial in known)
        return sum(trial.cost or 0.0 for trial in known) * budget / spent if known and spent else None


def trainings_of(trials: Sequence[Trial]) -> list[Training]:
    """Returns the trainings of a study's trials, in the order of their first trials.

    Example:
      >>> first = Trial(0, {"x": 0.5}, "paused", 2.0, budget=1)
      >>> [training.values for training in trainings_of([first, Trial(1, {"x": 0.5}, budget=3, resumes=0)])]
      [{1: 2.0}]
    """
    groups: dict[int, list[Trial]] = {}
    first_of: dict[int, int] = {}
    for trial in trials:
        first = first_of[trial.number] = trial.number if trial.resumes is None else first_of[trial.resumes]
        groups.setdefault(first, []).append(trial)
    return [Training(tuple(group)) for group in groups.values()]


def first_number(trial: Trial, trials: Mapping[int, Trial] | Sequence[Trial]) -> int:
    """Returns the number of the first trial of a trial's training; ``trials`` has those before it, by their numbers.

    Example:
      >>> first = Trial(0, {"x": 0.5}, "paused", 2.0, budget=1)
      >>> first_number(Trial(1, {"x": 0.5}, budget=3, resumes=0), [first])
      0
    """
    while trial.resumes is not None:
        trial = trials[trial.resumes]
    return trial.number


def spent_by(trial: Trial, trials: Mapping[int, Trial] | Sequence[Trial]) -> float:
    """Returns the budget that a trial trains for, beyond that of the trial that it resumes; 0 without a budget.

    ``trials`` has the trial that it resumes, by its number.

    Example:
      >>> first = Trial(0, {"x": 0.5}, "paused", 2.0, budget=1)
      >>> spent_by(Trial(1, {"x": 0.5}, budget=3, resumes=0), [first])
      2
    """
    if trial.resumes is None or trial.restarts:
        return trial.budget or 0
    return (trial.budget or 0) - (trials[trial.resumes].budget or 0)
