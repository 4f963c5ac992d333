"""The next trial of a study with a fidelity: a paused configuration or a new one, and the budget to train it to.

A paused training goes on if it is among the best at its budget (`promotion`); otherwise a new configuration
starts at the lowest budget. The method suggests it, from the final values of all trainings: known ones, and forecasts
from lower budgets with their errors (`forecasts`).
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.explanation import Standing
from dre_jax.tuning.engine.fixed_values import propose_with
from dre_jax.tuning.engine.study_arrays import total_cost
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.forecasts import all_rung_responses, forecast_trials
from dre_jax.tuning.fidelity.promotion import ranks_at_budget, training_to_promote
from dre_jax.tuning.fidelity.trainings import Training, trainings_of
from dre_jax.tuning.trials.objectives import values_of
from dre_jax.tuning.trials.trial import Trial

_N_FIRST = 8
"""Number of trainings before the first one goes on, without past studies."""


class NextTrial(NamedTuple):
    """What a trial is to do."""

    params: Params
    budget: float | None = None
    """To train until; None without a fidelity."""
    resumes: int | None = None
    """The number of the paused trial that it continues; None for a new configuration."""
    improvement: float = math.inf
    """Expected improvement of a new configuration, in units of the values; infinite if unknown."""


class FidelitySearch:
    """Decides on the trials of a study with a fidelity. It has no state: the same trials give the same next one."""

    def __init__(self, engine: Engine, fidelity: Fidelity) -> None:
        """Creates a search of a study."""
        self._engine, self._fidelity = engine, fidelity
        reference = engine.criterion.reference
        self._reference = None if reference is None else np.array(reference)

    def next_trials(self, trials: Sequence[Trial], enqueued: Sequence[Params], n: int) -> list[NextTrial]:
        """Returns the next n trials, of different trainings; the first new ones have enqueued values."""
        queue, batch = list(enqueued), list[NextTrial]()
        all_trials = list(trials)
        for _ in range(n):
            step = self._next_trial(all_trials, queue.pop(0) if queue else None)
            batch.append(step)
            all_trials.append(Trial(len(all_trials), step.params, budget=step.budget, resumes=step.resumes))
        return batch

    def _next_trial(self, trials: Sequence[Trial], fixed: Params | None) -> NextTrial:
        promoted = None if fixed is not None else self.promotion(trials)
        if promoted is not None:
            return promoted
        trainings = trainings_of(trials)
        options = {"number": len(trials), "spent": total_cost(trials)}
        suggestion = propose_with(self._engine, self._observe(trainings), fixed, **options)
        is_repeated = fixed is None and any(suggestion.params == training.last.params for training in trainings)
        paused = self.best_paused(trials) if is_repeated else None
        if paused is not None:
            return paused
        improvement = math.inf if suggestion.improvement is None else suggestion.improvement
        return NextTrial(suggestion.params, self._fidelity.budgets[0], None, improvement)

    def observations(self, trials: Sequence[Trial]) -> list[Trial]:
        """Returns a trial for each training, as suggestions and predictions read it.

        A trial below the highest budget has the forecast of its final value, as a trial that was stopped. Before two
        trainings have different values, it is a running one.
        """
        return self._observe(trainings_of(trials))

    def _observe(self, trainings: Sequence[Training]) -> list[Trial]:
        """Returns `observations` of trainings."""
        valued = _with_value(trainings)
        forecasts = forecast_trials(valued, self._fidelity, self._engine.objectives)
        indices = {training.trials[0].number: i for i, training in enumerate(valued)}
        observations = []
        for training in trainings:
            trial, cost = training.latest_valued, training.cost_at(self._fidelity.highest)
            if trial is None or training.state in ("complete", "failed"):
                observations.append(training.last.with_fields(cost=cost))
            elif forecasts is None:
                observations.append(trial.with_fields(state="running", value=None, values={}))
            else:
                observations.append(forecasts[indices[training.trials[0].number]].with_fields(cost=cost))
        return observations

    def promotion(self, trials: Sequence[Trial]) -> NextTrial | None:
        """Returns the trial that resumes the training that is to go on; None if a new one is to start."""
        valued = _with_value(training for training in trainings_of(trials) if training.last.in_space)
        if not valued:
            return None
        responses, lengths = all_rung_responses(valued, self._fidelity, self._engine.objectives)
        may_resume = np.array([_may_resume(training) for training in valued])
        # What past studies suggest is worth a whole training at once; a random configuration is not.
        n_first = _N_FIRST if self._engine.past is None else 1
        i = training_to_promote(responses, lengths, may_resume, n_first=n_first, reference=self._reference)
        return None if i is None else self._resume(valued[i])

    def best_paused(self, trials: Sequence[Trial]) -> NextTrial | None:
        """Returns the trial that resumes the best paused training of the highest budget; None if none is paused.

        It follows a suggestion that repeats a configuration, because the space has no other.
        """
        paused = [training for training in trainings_of(trials) if _may_resume(training)]
        if not paused:
            return None
        reached = max(training.reached for training in paused)
        farthest = [training for training in paused if training.reached == reached]
        values = values_of([training.last for training in farthest], self._engine.objectives)
        return self._resume(farthest[int(np.argmin(ranks_at_budget(values, self._reference)))])

    def standing(self, trials: Sequence[Trial], paused: Trial) -> Standing:
        """Returns how the value of a paused trial compares with those of the trainings that have reached its budget."""
        valued = _with_value(trainings_of(trials))
        responses, lengths = all_rung_responses(valued, self._fidelity, self._engine.objectives)
        i = next(i for i, training in enumerate(valued) if training.last.number == paused.number)
        rung, reached = lengths[i] - 1, lengths >= lengths[i]
        ranks = ranks_at_budget(responses[reached, rung], self._reference)
        rank = int(ranks[np.count_nonzero(reached[:i])])
        return Standing(paused.number, paused.budget or 0, rank, len(ranks))

    def _resume(self, training: Training) -> NextTrial:
        budget = next(budget for budget in self._fidelity.budgets if budget > training.reached)
        return NextTrial(training.last.params, budget, training.last.number)


def _with_value(trainings: Iterable[Training]) -> list[Training]:
    return [training for training in trainings if training.latest_valued is not None]


def _may_resume(training: Training) -> bool:
    return training.state == "paused" and training.last.is_feasible and training.last.in_space
