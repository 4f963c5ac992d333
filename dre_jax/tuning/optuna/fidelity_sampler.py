"""Suggestions in a study of Optuna whose trials pause: each trial is a part of a training, up to a budget.

A paused trial is a pruned one with a value. Its budget, and the trial that it resumes, are attributes of the user.
"""

from collections.abc import Iterable
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.space.space import Params
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.next_trial import FidelitySearch, NextTrial
from dre_jax.tuning.optuna.sampler import DRESampler
from dre_jax.tuning.optuna.trials import STATES, TrialReader, numbers_of_retried, value_fields
from dre_jax.tuning.past.trial_attributes import BUDGET, RESTARTS, RESUMES, cost_of, is_paused_trial
from dre_jax.tuning.trials.objectives import Objectives
from dre_jax.tuning.trials.trial import Trial


class FidelitySampler(DRESampler):
    """Sampler of new configurations, from the final values of trainings: known ones, and forecasts of paused ones."""

    def __init__(self, *arguments: Any, fidelity: Fidelity, **options: Any) -> None:
        """Creates a sampler of a search space, as `DRESampler`."""
        super().__init__(*arguments, **options)
        self._fidelity = fidelity

    def promotion(self, study: Study) -> NextTrial | None:
        """Returns the trial that resumes the training that is to go on; None if a new one is to start."""
        return self._search(study).promotion(self.read(study))

    def best_paused(self, study: Study) -> NextTrial | None:
        """Returns the trial that resumes the best paused training; None if none is paused."""
        return self._search(study).best_paused(self.read(study))

    def read(self, study: Study) -> list[Trial]:
        """Returns the trials of a study, see `read_trainings`."""
        reader = self._reader_for(study, self._distributions)
        assert reader is not None  # the search space is known
        return read_trainings(study.get_trials(deepcopy=False), reader, self._fidelity, self._objectives(study))

    def _read(self, study: Study, trial: FrozenTrial, reader: TrialReader, engine: Engine) -> list[Trial]:
        other_trials = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        search = FidelitySearch(engine, self._fidelity)
        return search.observations(read_trainings(other_trials, reader, self._fidelity, engine.objectives))

    @property
    def _distributions(self) -> dict[str, Any]:
        assert self._search_space is not None
        return self._search_space.distributions

    def _search(self, study: Study) -> FidelitySearch:
        return FidelitySearch(self._engine_of(study), self._fidelity)

    def _objectives(self, study: Study) -> Objectives:
        return self._engine_of(study).objectives

    def _engine_of(self, study: Study) -> Engine:
        assert self._search_space is not None
        return self._engine_for(self._search_space.space, [direction.name.lower() for direction in study.directions])


def read_trainings(
    trials: Iterable[FrozenTrial], reader: TrialReader, fidelity: Fidelity, objectives: Objectives
) -> list[Trial]:
    """Returns the trials of a study with a fidelity whose configuration can be read.

    A trial that waits to resume a training counts as running. A trial that runs as another one is left out.
    """
    trials = list(trials)
    again, trials_read = numbers_of_retried(trials), []
    for trial in trials:
        is_new = trial.state == TrialState.WAITING and RESUMES not in trial.user_attrs
        params = None if is_new or trial.number in again else reader.read(trial)
        if params is not None:
            trials_read.append(with_budget(_without_budget(trial, params, objectives), trial, fidelity, objectives))
    return trials_read


def _without_budget(trial: FrozenTrial, params: Params, objectives: Objectives) -> Trial:
    state = STATES.get(trial.state, "running")
    if state == "complete":
        return Trial(trial.number, params, state, cost=cost_of(trial), **value_fields(trial, objectives))
    return Trial(trial.number, params, "running" if state == "running" else "failed", cost=cost_of(trial))


def with_budget(trial: Trial, frozen_trial: FrozenTrial, fidelity: Fidelity, objectives: Objectives) -> Trial:
    """Returns a trial with the budget of Optuna's trial, what it resumes, and the values of a paused one."""
    attributes = frozen_trial.user_attrs
    default = fidelity.highest if trial.state == "complete" else fidelity.budgets[0]
    fields: dict[str, Any] = {"budget": attributes.get(BUDGET, default), "resumes": attributes.get(RESUMES)}
    fields["restarts"] = bool(attributes.get(RESTARTS))
    if is_paused_trial(frozen_trial):
        fields |= {"state": "paused", **value_fields(frozen_trial, objectives)}
    return trial.with_fields(**fields)
