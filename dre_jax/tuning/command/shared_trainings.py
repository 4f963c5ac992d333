"""A study in one of Optuna's storages whose trials pause, and are resumed by any of several processes.

Each part of a training, up to a budget, is a trial of Optuna. Its attributes say the budget, the trial that it resumes
and the number of the training. To resume a training, a process writes such a trial and then reads all others. Of two
processes that resume the same trial, the one with the lower number goes on: a storage numbers trials in the order in
which it writes them, so that the process with the higher number reads the other one.
"""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from dre_jax.tuning.command.other_workers import ALIVE, WORKER
from dre_jax.tuning.command.process_guard import GRACE
from dre_jax.tuning.command.shared_study import HAS_ENDED, SharedStudy
from dre_jax.tuning.fidelity.checkpoints import restart_if_lost, with_checkpoint
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.next_trial import NextTrial
from dre_jax.tuning.fidelity.trainings import spent_by
from dre_jax.tuning.optuna.fidelity_sampler import FidelitySampler, with_budget
from dre_jax.tuning.optuna.frozen_trials import to_frozen_trial
from dre_jax.tuning.optuna.sampler import DRESampler
from dre_jax.tuning.optuna.trials import RETRIED, is_retried
from dre_jax.tuning.past.trial_attributes import BUDGET, RESTARTS, RESUMES
from dre_jax.tuning.trials.trial import Trial

_TRAINING = "dre_jax:training"
"""User attribute of a trial: the number of its training, which is that of the first trial that began it."""


class SharedTrainings(SharedStudy):
    """A study of a storage with a fidelity, for `dre_jax.tuning.command.runner.run_trials`.

    If the process of a trial is lost, another one runs the trial again, in the folder of its training.
    """

    fidelity: Fidelity
    _sampler: FidelitySampler
    _grace = GRACE + 2.0  # the program of a lost process still uses the folder until it is killed

    def __init__(self, *arguments: Any, fidelity: Fidelity, **options: Any) -> None:
        """Opens or creates a study, as `SharedStudy`.

        Raises `ConfigError` and `DataError` as `SharedStudy`, and `DataError` for a study of another fidelity.
        """
        self.fidelity = fidelity
        super().__init__(*arguments, **options)

    def _make_sampler(self, **options: Any) -> DRESampler:
        return FidelitySampler(self.space, fidelity=self.fidelity, **options)

    @property
    def total_budget(self) -> float:
        """The budget that all trials have trained for; a lost trial counts when it runs again."""
        by_number = self._trials_by_number
        return sum(spent_by(trial, by_number) for trial in by_number.values() if trial.number not in self._again)

    @property
    def _trials_by_number(self) -> dict[int, Trial]:
        return {trial.number: trial for trial in self.trials}

    def training_number(self, trial: Trial) -> int:
        """Returns the number of a trial's training, which names the folder of its checkpoint."""
        return self._training_number(self._read_trials()[trial.number])

    def prepare_checkpoint(self, trial: Trial, checkpoints: Path) -> Trial:
        """Returns a running trial with the folder of its training; it starts over if its checkpoint is lost."""
        return restart_if_lost(self, with_checkpoint(trial, self.training_number(trial), checkpoints))

    def restart(self, trial: Trial) -> Trial:
        """Says that the checkpoint that a running trial was to resume is lost."""
        self._set_attributes(self._running_trials[trial.number], {RESTARTS: True})
        return trial.with_fields(restarts=True)

    def is_lost(self, trial: Trial) -> bool:
        """Returns whether another process trains the configuration, because this one was silent for too long."""
        return trial.number in self._lost

    def gain_is_below(self, threshold: float) -> bool:
        """Returns whether the latest suggestions gain little, once a trial has reached the highest budget."""
        is_below = super().gain_is_below(threshold)
        return is_below and any(trial.state == "complete" for trial in self.trials)

    def _start(self) -> Trial:
        waiting = self._claim_waiting()
        if waiting is not None:
            return waiting
        promotion = self._sampler.promotion(self._study)
        if promotion is not None:
            return self._resume(promotion)
        template = to_frozen_trial(Trial(0, {}, budget=self.fidelity.budgets[0]), self._translation)
        new = self._started(self._create(template, {}))
        trainings = self._sampler.read(self._study)
        is_repeated = any(other.number != new.number and other.params == new.params for other in trainings)
        paused = self._sampler.best_paused(self._study) if is_repeated else None
        if paused is None:
            return new
        self._withdraw(new.number)
        return self._resume(paused)

    def _claim_waiting(self) -> Trial | None:
        """Starts a trial that waits, which no other process then does; None without any."""
        storage = self._study._storage
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            identifier = trial._trial_id
            try:
                self._set_attributes(identifier, {ALIVE: time.time()})  # before it starts, so that it can be lost
                if storage.set_trial_state_values(identifier, TrialState.RUNNING):
                    return self._started(optuna.Trial(self._study, identifier))
            except HAS_ENDED:  # by another process
                continue
        return None

    def _resume(self, step: NextTrial) -> Trial:
        """Starts a trial that resumes another one. Raises `HAS_ENDED` if another process is faster."""
        trial = Trial(0, step.params, budget=step.budget, resumes=step.resumes)
        assert step.resumes is not None
        training = self._training_number(self._read_trials()[step.resumes])
        return self._started(self._create(to_frozen_trial(trial, self._translation), {_TRAINING: training}))

    def _create(self, template: FrozenTrial, attributes: Mapping[str, Any]) -> optuna.Trial:
        """Writes a running trial of this process to the storage."""
        template.user_attrs = {**template.user_attrs, **attributes, ALIVE: time.time(), WORKER: self._worker}
        return optuna.Trial(self._study, self._study._storage.create_new_trial(self._study._study_id, template))

    def _started(self, trial: optuna.Trial) -> Trial:
        """Returns a trial that this process has started; raises `HAS_ENDED` if another one resumes its training."""
        started = self._with_params(trial)
        trials = self._read_trials()
        started = with_budget(started, trials[trial.number], self.fidelity, self.objectives)
        if started.resumes is not None:
            rivals = (other for other in trials[: trial.number] if other.user_attrs.get(RESUMES) == started.resumes)
            if not all(map(is_retried, rivals)):
                self._withdraw(trial.number)
                raise HAS_ENDED
        return started

    def _withdraw(self, number: int) -> None:
        """Ends a trial of this process that another trial replaces."""
        identifier = self._running_trials.pop(number)
        self._set_attributes(identifier, {RETRIED: True})
        self._study._storage.set_trial_state_values(identifier, TrialState.FAIL)

    def _set_attributes(self, identifier: int, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            self._study._storage.set_trial_user_attr(identifier, name, value)

    def _pauses(self, identifier: int, values: Sequence[float]) -> bool:
        budget = self._study._storage.get_trial(identifier).user_attrs.get(BUDGET, self.fidelity.budgets[0])
        return not any(map(math.isnan, values)) and bool(budget < self.fidelity.highest)

    def _to_trial(self, trial: FrozenTrial) -> Trial:
        return with_budget(super()._to_trial(trial), trial, self.fidelity, self.objectives)

    def _attributes_of_training(self, trial: FrozenTrial) -> dict[str, Any]:
        known = {name: trial.user_attrs[name] for name in (BUDGET, RESUMES, RESTARTS) if name in trial.user_attrs}
        return {**known, _TRAINING: self._training_number(trial)}

    def _training_number(self, trial: FrozenTrial) -> int:
        return int(trial.user_attrs.get(_TRAINING, trial.number))
