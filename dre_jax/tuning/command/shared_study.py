"""A study in one of Optuna's storages, whose trials several processes run, on one machine or many."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.tuning.objectives.engine import Surrogates
from dre_jax.tuning.objectives.objectives import ANY_DIRECTION, require_directions, surrogates_by_objective
from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.sampler import DRESampler
from dre_jax.tuning.past.optuna_studies import address_without_password, open_storage, storage_errors
from dre_jax.tuning.space.json_format import to_json
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.trial import State, Trial

_REFRESH = 1.0  # seconds between two readings of the storage
_BEAT, _SILENCE = 30.0, 600.0
"""Seconds between two signs of life of a running trial, and without one after which its machine counts as down."""
_SPACE, _WORKER, _ALIVE, _RETRY = "dre_jax:space", "dre_jax:worker", "dre_jax:alive", "dre_jax:retried"
_STORAGE_ERRORS = (OSError, optuna.exceptions.StorageInternalError)
_STATES: dict[TrialState, State] = {TrialState.COMPLETE: "complete", TrialState.RUNNING: "running"}


class SharedStudy:
    """A study of a storage, for `dre_jax.tuning.command.runner.run_trials`.

    A trial of a process that has ended without a result, or of a machine that has been silent for ten minutes, is told
    as failed, and its configuration runs again.
    """

    def __init__(
        self,
        storage: str,
        name: str,
        space: Space,
        surrogate: Surrogates = None,
        *,
        directions: Mapping[str, str | None] = ANY_DIRECTION,
        seed: int | None = None,
    ) -> None:
        """Opens a study of a storage, or creates it.

        Args:
          storage: the address of a database, or the path of a journal file.
          name: of the study.
          space: the search space.
          surrogate: knowledge of past tasks; of several objectives by name.
          directions: by metric, "" for a single one; None takes the study's, "minimize" for a new one.
          seed: of the suggestions of this process; by default random ones.

        Raises:
          DataError: for a storage that cannot be used, or a study of another space, objectives or direction.
        """
        self.space = space
        self._translation = translation_of(space)
        self._address = address_without_password(storage)
        self._study = _open_study(storage, name, directions, surrogate)
        own = [one.name.lower() for one in self._study.directions]
        metrics = self._study.metric_names or map(str, range(len(own)))
        self.named_directions = dict(zip(metrics if len(own) > 1 else [""], own, strict=True))
        """Directions by objective; a single one has the name ""."""
        require_directions(name, self.named_directions, directions)
        self.named_surrogates = surrogates_by_objective(surrogate, self.named_directions)
        """Knowledge of past tasks by objective, named as in `named_directions`."""
        self._study.sampler = DRESampler(space, surrogate=list(self.named_surrogates.values()), seed=seed)
        content = to_json(space)
        if self._study.user_attrs.setdefault(_SPACE, content) != content:
            raise DataError(f"{name} must be a study of the space given, but it is one of another space")
        self._study.set_user_attr(_SPACE, content)
        self._worker = f"{platform.node()} {os.getpid()}"
        self._read_at = self._beat_at = -math.inf
        self._trials: tuple[Trial, ...] = ()
        self._n_retried = 0

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials that have started, those of other processes included; at most a second old."""
        if time.monotonic() - self._read_at > _REFRESH:
            frozen_trials = [trial for trial in self._read_trials() if trial.state != TrialState.WAITING]
            self._trials = tuple(map(self._to_trial, frozen_trials))
            self._n_retried = sum(_RETRY in trial.user_attrs for trial in frozen_trials)
            self._read_at = time.monotonic()
            self._beat(frozen_trials)
        return self._trials

    @property
    def n_started(self) -> int:
        """Number of trials that have started, without those that run again."""
        return len(self.trials) - self._n_retried

    @property
    def interrupted_trials(self) -> list[Trial]:
        """No trials: the running ones are those of other processes."""
        return []

    def ask(self) -> Trial:
        """Returns the next trial. Raises `DataError` if the storage fails."""
        params: Params = {}
        with storage_errors(self._address, _STORAGE_ERRORS):
            self._retry_abandoned()
            trial = self._study.ask()
            trial.set_user_attr(_WORKER, self._worker)
            trial.set_user_attr(_ALIVE, time.time())
            for name in self.space.sequence:
                if self.space.is_active(name, params):
                    value = _suggest(trial, name, self._translation.distributions[name])
                    params[name] = self._translation.from_optuna_value(name, value)
        self._read_at = -math.inf
        return Trial(trial.number, {name: params[name] for name in self.space if name in params})

    def tell(self, trial: int, value: float | Mapping[str, float] | None) -> Trial:
        """Reports the value of a trial of this process, or those of several objectives; None if it failed."""
        self._read_at = -math.inf
        values = [value[name] for name in self.named_directions] if isinstance(value, Mapping) else value
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        with storage_errors(self._address, _STORAGE_ERRORS):
            # Already ended, if this machine was silent for so long that another process runs the trial again.
            return self._to_trial(self._study.tell(trial, values, state=state, skip_if_finished=True))

    def tell_failed(self, trial: int) -> Trial:
        """Reports that a trial of this process failed."""
        return self.tell(trial, None)

    def gain_is_below(self, threshold: float) -> bool:
        """Refuses: raises `ConfigError`, as each process knows its own suggestions only."""
        raise ConfigError("a study that processes share has no limit of the expected gain: pass a study file")

    def write(self) -> None:
        """Does nothing, as the storage is written at once."""

    def _beat(self, trials: Sequence[FrozenTrial]) -> None:
        """Gives signs of life of the running trials of this process."""
        if time.monotonic() - self._beat_at > _BEAT:
            for trial in trials:
                if trial.state == TrialState.RUNNING and trial.user_attrs.get(_WORKER) == self._worker:
                    if_ended = contextlib.suppress(optuna.exceptions.UpdateFinishedTrialError)  # since it was read
                    with storage_errors(self._address, _STORAGE_ERRORS), if_ended:
                        self._study._storage.set_trial_user_attr(trial._trial_id, _ALIVE, time.time())
            self._beat_at = time.monotonic()

    def _read_trials(self) -> Sequence[FrozenTrial]:
        with storage_errors(self._address, _STORAGE_ERRORS):
            return self._study.get_trials(deepcopy=False)

    def _to_trial(self, trial: FrozenTrial) -> Trial:
        values = {
            name: self._translation.from_optuna_value(name, value)
            for name, value in trial.params.items()
            if name in self.space
        }
        state = _STATES.get(trial.state, "failed")
        if len(self.named_directions) == 1:
            return Trial(trial.number, values, state, trial.value)
        objectives = dict(zip(self.named_directions, trial.values or (), strict=False))
        return Trial(trial.number, values, state, _values=objectives)

    def _retry_abandoned(self) -> None:
        """Tells trials of ended processes as failed, and adds their configurations to those that wait."""
        for trial in self._read_trials():
            if trial.state == TrialState.RUNNING and _is_abandoned(trial.user_attrs):
                with contextlib.suppress(Exception):  # another process was faster
                    self._study._storage.set_trial_user_attr(trial._trial_id, _RETRY, True)
                    self._study.tell(trial.number, state=TrialState.FAIL)
                    self._study.enqueue_trial(trial.params)


@optuna_logs_at("WARNING")
def _open_study(storage: str, name: str, directions: Mapping[str, str | None], surrogate: Any) -> optuna.Study:
    with storage_errors(address_without_password(storage)):
        base_storage = _create_storage(storage)
        with contextlib.suppress(KeyError):
            return optuna.load_study(study_name=name, storage=base_storage)
        ways = {objective: one or "minimize" for objective, one in directions.items()}
        surrogates_by_objective(surrogate, ways)  # before there is a study
        study = optuna.create_study(
            study_name=name, storage=base_storage, directions=list[Any](ways.values()), load_if_exists=True
        )
        if len(directions) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                study.set_metric_names(list(directions))
        return study


def _create_storage(address: str) -> optuna.storages.BaseStorage:
    """Returns the storage at an address; processes that create its tables at the same time disturb each other."""
    for wait in (0.2, 0.5, 1.0):
        try:
            return open_storage(address, create=True)
        except (DataError, ConfigError):
            raise
        except Exception:  # of any database and driver
            time.sleep(wait)
    return open_storage(address, create=True)


def _suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    """Returns the value of a trial in a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    suggest = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
    numbers: Any = distribution
    return suggest(name, numbers.low, numbers.high, step=numbers.step, log=numbers.log)


def _is_abandoned(attributes: Mapping[str, Any]) -> bool:
    """Returns whether the process of a running trial has ended, or another machine's has been silent for too long."""
    node, _, process = attributes.get(_WORKER, "").rpartition(" ")
    if node != platform.node():
        return bool(time.time() - attributes.get(_ALIVE, math.inf) > _SILENCE)
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:  # of another user
        pass
    return False
