"""A study in one of Optuna's storages, whose trials several processes run, on one machine or many."""

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from dre_jax.checks import check_positive
from dre_jax.data.features import plain_features
from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.space.json_format import to_json
from dre_jax.space.space import Params, Space
from dre_jax.tuning.command.other_workers import ALIVE, WORKER, OtherWorkers
from dre_jax.tuning.command.worker_identity import new_worker, seconds_between_signs
from dre_jax.tuning.fidelity.fidelity import Fidelity, require_fidelity
from dre_jax.tuning.objectives.criterion import Surrogates, surrogates_by_objective
from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.sampler import DRESampler
from dre_jax.tuning.optuna.stopping import gain_is_below
from dre_jax.tuning.optuna.trials import RETRIED, is_retried, value_fields
from dre_jax.tuning.past.optuna_studies import address_without_password, is_new_file, open_storage, storage_errors
from dre_jax.tuning.past.trial_attributes import COST, FIDELITY, STDERR, cost_of
from dre_jax.tuning.trials.objectives import Objective, objective_values, objectives_by_name, require_objectives
from dre_jax.tuning.trials.trial import VALUE, State, Trial

_REFRESH = 1.0  # seconds between two readings of the storage
MAX_ATTEMPTS = 3
"""Maximum number of times that a configuration is started whose processes are lost."""
_SPACE, _ATTEMPT, _FEATURES = "dre_jax:space", "dre_jax:attempt", "dre_jax:features"
HAS_ENDED = optuna.exceptions.UpdateFinishedTrialError
"""Another process has ended a trial."""
_STORAGE_ERRORS = (OSError, optuna.exceptions.StorageInternalError)
_STATES: dict[TrialState, State] = {TrialState.COMPLETE: "complete", TrialState.RUNNING: "running"}


class SharedStudy:
    """A study of a storage, for `dre_jax.tuning.command.runner.run_trials`.

    A process is lost if it ended without a result, or has given no sign of life for some time. Its trial is then told
    as failed, and the configuration runs again, at most `MAX_ATTEMPTS` times. The model of failures ignores all of
    these trials but the last. A trial that another process has ended is passed over.
    """

    fidelity: Fidelity | None = None
    """None, as every trial gives the final value; see `SharedTrainings`."""

    _grace: ClassVar[float] = 0.0
    """Seconds between the loss of a process and a new start of its trial."""

    def __init__(
        self,
        storage: str,
        name: str,
        space: Space,
        surrogate: Surrogates = None,
        *,
        directions: Mapping[str, str | None] = MappingProxyType({VALUE: None}),
        seed: int | None = None,
        silence: float | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> None:
        """Opens a study of a storage, the address of a database or the path of a journal file, or creates it.

        Directions are by metric, "value" for a single one; None takes the study's, "minimize" for a new one.
        Suggestions of this process are random unless it has a seed. After ``silence`` seconds without a sign of life,
        other processes count this one as lost. By default, that is three times the longest trial so far, but at least
        half a minute and at most ten minutes. Features of the task are user attributes of the study, which
        `dre_jax.from_studies` reads; by default the study's.

        Raises `ConfigError` for a silence that is not positive, and `DataError` for a storage that cannot be used, or a
        study of another space, objectives or direction.
        """
        check_positive(silence=silence)
        self.space = space
        self._translation = translation_of(space)
        self._address = address_without_password(storage)
        self._study = _open_study(storage, name, directions, surrogate)
        study_directions = [direction.name.lower() for direction in self._study.directions]
        metrics = self._study.metric_names or map(str, range(len(study_directions)))
        self.objectives = tuple(map(Objective, metrics if len(study_directions) > 1 else [VALUE], study_directions))
        """Names and directions."""
        require_objectives(name, self.objectives, directions)
        self.named_surrogates = surrogates_by_objective(surrogate, self.objectives)
        """Knowledge of past tasks by the name of the objective."""
        self._study.sampler = self._sampler = self._new_sampler(features, seed)
        self._require_same(name)
        self._worker = new_worker(silence)
        self._other_workers = OtherWorkers(self._worker, self._grace)
        self._running_trials: dict[int, int] = {}  # numbers of the running trials of this process, and the storage's
        self._lost = set[int]()  # numbers of trials of this process that another one has ended
        self._read_at = self._sign_at = -math.inf
        self._frozen_trials: list[FrozenTrial] = []
        self._trials: tuple[Trial, ...] = ()
        self._again = set[int]()  # numbers of trials whose configuration runs again
        self._awaited_trials: list[FrozenTrial] = []

    def _new_sampler(self, features: Mapping[str, Any] | None, seed: int | None) -> DRESampler:
        """Returns the sampler of the study, whose features of the task are in the storage from now on."""
        stored = self._study.user_attrs.get(_FEATURES)
        values = stored if features is None else plain_features(features)
        if stored and values != stored:
            raise DataError(f"{self._study.study_name} must be a study of features {values}, but has {stored}")
        surrogates = list(self.named_surrogates.values())
        sampler = self._make_sampler(surrogate=surrogates, seed=seed, features=values)
        if sampler.features and not stored:
            for name, value in {_FEATURES: sampler.features, **sampler.features}.items():
                self._study.set_user_attr(name, value)
        return sampler

    def _make_sampler(self, **options: Any) -> DRESampler:
        return DRESampler(self.space, **options)

    def _require_same(self, name: str) -> None:
        """Raises `DataError` if the study is of another space or fidelity; the storage has both from now on."""
        attributes, space = self._study.user_attrs, to_json(self.space)
        if _SPACE in attributes:
            if attributes[_SPACE] != space:
                raise DataError(f"{name} must be a study of this search space, but it has another space")
            stored = attributes.get(FIDELITY)
            require_fidelity(name, None if stored is None else Fidelity(**stored), self.fidelity)
        if self.fidelity is not None:
            self._study.set_user_attr(FIDELITY, self.fidelity.to_json())
        self._study.set_user_attr(_SPACE, space)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials that have started, those of other processes included; at most a second old."""
        if time.monotonic() - self._read_at > _REFRESH:
            frozen_trials = [trial for trial in self._read_trials() if trial.state != TrialState.WAITING]
            self._frozen_trials, self._trials = frozen_trials, tuple(map(self._to_trial, frozen_trials))
            self._awaited_trials = [
                trial for trial in frozen_trials if self._other_workers.may_be_lost(trial) and _has_attempts(trial)
            ]
            again = (trial for trial in frozen_trials if is_retried(trial) or self._runs_again(trial))
            self._again = {trial.number for trial in again}
            self._read_at = time.monotonic()
        self.keep_alive()
        return self._trials

    @property
    def n_started(self) -> int:
        """Number of trials that have started. A lost trial whose configuration runs again does not count."""
        return len(self.trials) - len(self._again)

    @property
    def awaited(self) -> str:
        """A phrase that names the trials whose processes may be lost, and when that is decided; empty without any."""
        self.trials  # noqa: B018 - reads the storage
        if not (trials := self._awaited_trials):
            return ""
        seconds = max(0.0, *map(self._other_workers.seconds_until_lost, trials))
        numbers, plural = ", ".join(str(trial.number) for trial in trials), len(trials) > 1
        worker = {} if plural else trials[0].user_attrs.get(WORKER, {})
        users = f"process {worker['process']} on {worker['host']}" if worker else "other processes"
        signs = "the processes give signs" if plural else "the process gives a sign"
        run = f"trial{'s' * plural} {numbers} of {users} run{'s' * (not plural)} again"
        return f"{run} in {seconds:.0f} s unless {signs} of life"

    @property
    def interrupted_trials(self) -> list[Trial]:
        """No trials: the running ones are those of other processes."""
        return []

    def ask(self) -> Trial:
        """Returns the next trial. Raises `DataError` if the storage fails."""
        return cast(Trial, self.ask_unless(lambda: False))

    def ask_unless(self, is_late: Callable[[], bool]) -> Trial | None:
        """Returns the next trial; None if it is late once the trial is suggested, whose configuration then waits."""
        with storage_errors(self._address, _STORAGE_ERRORS):
            self._retry_lost()
            while True:
                try:
                    trial = self._start()
                except HAS_ENDED:  # by another process: the next one
                    continue
                self._read_at = -math.inf
                if is_late():
                    self._running_trials.pop(trial.number, None)
                    self._run_again(self._study.get_trials(deepcopy=False)[trial.number], attempt=1)
                    return None
                return trial

    def _start(self) -> Trial:
        """Starts a trial. Raises `HAS_ENDED` if another process ends it before its configuration is known."""
        return self._with_params(self._study.ask())

    def _with_params(self, trial: optuna.Trial) -> Trial:
        """Returns a trial of this process that has started, with its configuration; raises as `_start`."""
        self._running_trials[trial.number] = trial._trial_id
        try:
            params = self._suggest(trial)
        except HAS_ENDED:
            self._running_trials.pop(trial.number, None)
            raise
        return Trial(trial.number, {name: params[name] for name in self.space if name in params})

    def _suggest(self, trial: optuna.Trial) -> Params:
        """Returns the configuration of a trial that has started, in the order of `Space.sequence`."""
        params: Params = {}
        trial.set_user_attr(ALIVE, time.time())
        trial.set_user_attr(WORKER, self._worker)
        for name in self.space.sequence:
            if self.space.is_active(name, params):
                value = _suggest(trial, name, self._translation.distributions[name])
                params[name] = self._translation.from_optuna_value(name, value)
        return params

    def tell(
        self,
        trial: int,
        value: float | Mapping[str, float] | None,
        *,
        stderr: float | None = None,
        cost: float | None = None,
    ) -> Trial:
        """Reports the value of a trial of this process, or those of several objectives; None if it failed."""
        self._read_at = -math.inf
        identifier = self._running_trials.pop(trial, None)
        values: Any = value
        if value is not None:
            values = list(objective_values(value, self.objectives).values())
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        with storage_errors(self._address, _STORAGE_ERRORS):
            # Already ended, if this process was silent for so long that another one runs the trial again.
            with contextlib.suppress(HAS_ENDED):
                for name, number in ((COST, cost), (STDERR, stderr)):
                    if number is not None and identifier is not None:
                        self._study._storage.set_trial_user_attr(identifier, name, number)
                if identifier is not None and values is not None and self._pauses(identifier, values):
                    self._study._storage.set_trial_state_values(identifier, TrialState.PRUNED, values)
                else:
                    self._study.tell(trial, values, state=state, skip_if_finished=True)
            return self._to_trial(self._study.get_trials(deepcopy=False)[trial])

    def _pauses(self, identifier: int, values: Sequence[float]) -> bool:
        """Returns whether a running trial with values may be resumed."""
        return False

    def tell_failed(self, trial: int, *, cost: float | None = None) -> Trial:
        """Reports that a trial of this process failed."""
        return self.tell(trial, None, cost=cost)

    def give_back(self) -> None:
        """Lets any process run the running trials of this one again, after an interruption."""
        while self._running_trials:
            number, _ = self._running_trials.popitem()
            with contextlib.suppress(
                HAS_ENDED, ValueError, DataError
            ):  # another process ended it, or the storage fails
                trial = self._read_trials()[number]
                if trial.state == TrialState.RUNNING:
                    self._run_again(trial, trial.user_attrs.get(_ATTEMPT, 1))

    def gain_is_below(self, threshold: float) -> bool:
        """Returns whether the latest suggestions of all processes gain little; see `Optimizer.gain_is_below`."""
        check_positive(**{"the threshold of the expected gain": threshold})
        self._sampler.require_improvement(len(self.objectives))
        self.trials  # noqa: B018 - reads the storage
        return gain_is_below(self._frozen_trials, self.objectives[0].direction, threshold)

    def require_standard_errors(self) -> None:
        """Raises `ConfigError` if the method takes no standard errors."""
        self._sampler.require_standard_errors()

    def write(self) -> None:
        """Does nothing, as the storage is written at once."""

    def keep_alive(self) -> None:
        """Gives signs of life of the running trials of this process; call it often."""
        if time.monotonic() - self._sign_at > seconds_between_signs(self._worker):
            self._sign_at = time.monotonic()
            for number, identifier in list(self._running_trials.items()):
                try:
                    with storage_errors(self._address, _STORAGE_ERRORS):
                        self._study._storage.set_trial_user_attr(identifier, ALIVE, time.time())
                except HAS_ENDED:
                    self._running_trials.pop(number, None)
                    self._lost.add(number)

    def is_lost(self, trial: Trial) -> bool:
        """Returns whether the command of a trial has to end; False, as its value is passed over without harm."""
        return False

    def prepare_checkpoint(self, trial: Trial, checkpoints: Path) -> Trial:
        """Returns the trial, as a study without a fidelity has no checkpoints."""
        return trial

    def training_number(self, trial: Trial) -> int:
        """Returns the number of a trial, which is all of its training."""
        return trial.number

    @property
    def total_budget(self) -> float:
        """0, as trials have no budgets."""
        return 0.0

    def _read_trials(self) -> Sequence[FrozenTrial]:
        with storage_errors(self._address, _STORAGE_ERRORS):
            trials = self._study.get_trials(deepcopy=False)
        self._other_workers.read(trials)
        return trials

    def _to_trial(self, trial: FrozenTrial) -> Trial:
        values = {
            name: self._translation.from_optuna_value(name, value)
            for name, value in trial.params.items()
            if name in self.space
        }
        state = _STATES.get(trial.state, "failed")
        fields = value_fields(trial, self.objectives) if state == "complete" else {}
        return Trial(trial.number, values, state, cost=cost_of(trial), **fields)

    def _runs_again(self, trial: FrozenTrial) -> bool:
        """Returns whether the process of a running trial is lost, and its configuration may be started again."""
        return self._other_workers.is_lost(trial) and _has_attempts(trial)

    def _retry_lost(self) -> None:
        """Tells trials of lost processes as failed, and adds their configurations to those that wait."""
        for trial in self._read_trials():
            if self._other_workers.is_lost(trial):
                with contextlib.suppress(HAS_ENDED, ValueError):  # another process was faster
                    if self._runs_again(trial):
                        self._run_again(trial, trial.user_attrs.get(_ATTEMPT, 1) + 1)
                    else:
                        self._study.tell(trial.number, state=TrialState.FAIL)

    def _run_again(self, trial: FrozenTrial, attempt: int) -> None:
        """Tells a running trial as failed, and adds its configuration to those that wait."""
        self._study._storage.set_trial_user_attr(trial._trial_id, RETRIED, True)
        self._study.tell(trial.number, state=TrialState.FAIL)
        self._study.enqueue_trial(trial.params, user_attrs={_ATTEMPT: attempt, **self._attributes_of_training(trial)})

    def _attributes_of_training(self, trial: FrozenTrial) -> dict[str, Any]:
        """Returns the attributes that a trial has again when it runs again."""
        return {}


def _has_attempts(trial: FrozenTrial) -> bool:
    return bool(trial.user_attrs.get(_ATTEMPT, 1) < MAX_ATTEMPTS)


@optuna_logs_at("WARNING")
def _open_study(storage: str, name: str, directions: Mapping[str, str | None], surrogate: Any) -> optuna.Study:
    objectives = objectives_by_name(directions)
    if is_new_file(storage):
        surrogates_by_objective(surrogate, objectives)  # before there is a file
    with storage_errors(address_without_password(storage)):
        base_storage = _create_storage(storage)
        with contextlib.suppress(KeyError):
            return optuna.load_study(study_name=name, storage=base_storage)
        surrogates_by_objective(surrogate, objectives)  # before there is a study
        study = optuna.create_study(
            study_name=name,
            storage=base_storage,
            directions=list[Any](dict(objectives).values()),
            load_if_exists=True,
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
