"""Ask and tell: tunes a live model, with sequential or parallel trials."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import EllipsisType, MappingProxyType
from typing import Any, overload

import numpy as np

from dre_jax.data.files import stamp
from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.forks import check_not_forked
from dre_jax.tuning.curves.study_curves import StudyCurves, checked_report
from dre_jax.tuning.engine import Suggestion
from dre_jax.tuning.engine_config import EngineConfig, Observation
from dre_jax.tuning.objectives.engine import ObjectivesEngine
from dre_jax.tuning.objectives.objectives import front_of, objective_values, responses_of
from dre_jax.tuning.past.curves import PastCurves
from dre_jax.tuning.past_check import PastCheck
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.study_engine import make_engine
from dre_jax.tuning.study_file import (
    Stamp,
    Study,
    origin_of,
    read_study,
    resume_surrogate,
    resume_surrogates,
    write_study,
)
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import (
    State,
    Trial,
    constraint_values,
    find_trial,
    objective_value,
    trial_frame,
    validate_study,
)
from dre_jax.tuning.trial_loop import Callback, TrialLoop

_LOCKS = ("_lock", "_turn")
_PATIENCE = 10  # suggestions of little expected improvement, after which a search ends


class Optimizer:
    """Suggests configurations and learns from their values.

    `optimize` runs an objective; `ask` and `tell` leave the loop to the caller. Several threads may ask and tell: they
    ask one after the other, and tell at any time. The same seed and the same answers give the same suggestions.

    Example:
      >>> from dre_jax.tuning import Float
      >>> optimizer = Optimizer(Space({"x": Float(-1.0, 1.0)}), direction="minimize", seed=0)
      >>> for _ in range(3):
      ...     trial = optimizer.ask()
      ...     _ = optimizer.tell(trial, trial.params["x"] ** 2)
      >>> optimizer.optimize(lambda trial: trial["x"] ** 2, 2)
      >>> len(optimizer.trials), optimizer.best.value <= optimizer.trials[0].value
      (5, True)
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        surrogate: Surrogate | Mapping[str, Surrogate | None] | None = None,
        *,
        direction: str = "minimize",
        directions: Mapping[str, str] | None = None,
        seed: int = 0,
        config: EngineConfig | None = None,
        past_curves: PastCurves | None = None,
    ) -> None:
        """Creates a study without trials.

        Args:
          space: the search space; None for the surrogate's.
          surrogate: knowledge of past tasks; without one, the best method that needs none is used. With several
            objectives, a mapping of them to surrogates or None.
          direction: "minimize" or "maximize".
          directions: of several objectives, by name, in place of ``direction``.
          seed: seed of all suggestions.
          config: treatment of pending and failed trials.
          past_curves: learning curves of past studies, for `should_stop`.

        Raises:
          ConfigError: for an unknown direction, a seed that is no whole number from 0, no space, or a surrogate of
            several objectives whose method does not predict values, as `dre` does not.
          DataError: for a surrogate of another space or direction; the message says what differs.
        """
        validate_study(direction, seed)
        self.seed = int(seed)
        self._directions, self._engine = make_engine(space, surrogate, direction, directions, self.seed, config)
        self.space = self._engine.space
        self._trials: list[Trial] = []
        self._stamps: dict[str, Stamp | None] = {}  # of the files whose content is part of this study
        self._enqueued: list[Params] = []
        self._curves = StudyCurves(past_curves, self._engine.config.stopping_error)
        self._past_checks = [PastCheck() for _ in self._directions]
        self._improvements: list[float] = []  # expected, of the latest suggestions
        self._make_locks()

    def _make_locks(self) -> None:
        self._lock = threading.RLock()  # of the trials
        self._turn = threading.RLock()  # to ask, which takes its time: others may tell meanwhile

    def __getstate__(self) -> dict[str, Any]:
        """Returns the study, without its locks."""
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name not in _LOCKS}
            copies = {"_trials": list(self._trials), "_enqueued": list(self._enqueued), "_stamps": dict(self._stamps)}
            return state | copies

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores the study, with locks of its own."""
        self.__dict__.update(state)
        self._make_locks()

    @property
    def direction(self) -> str | None:
        """The direction of the objective; None with several objectives."""
        return self._directions.get(None)

    @property
    def directions(self) -> dict[str, str]:
        """The directions of several objectives by name; empty with one objective."""
        return {name: direction for name, direction in self._directions.items() if name is not None}

    @property
    def surrogate(self) -> Surrogate | None:
        """Knowledge of past tasks; None without, and with several objectives."""
        return None if self.directions else self._engine.surrogate

    @property
    def surrogates(self) -> dict[str, Surrogate | None]:
        """Knowledge of past tasks by objective; empty with one objective."""
        return dict(self._engine.surrogates) if isinstance(self._engine, ObjectivesEngine) else {}

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order of their numbers."""
        with self._lock:
            return tuple(self._trials)

    @property
    def best(self) -> Trial:
        """The complete, feasible trial with the best value, the first of equal ones.

        Raises `DataError` without any, and with several objectives, which have a `front`.
        """
        if self.directions:
            raise DataError("a study of several objectives has no best trial: front has its best trade-offs")
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if not complete:
            raise DataError("there is a best trial once one is complete, but none is")
        feasible = [trial for trial in complete if trial.is_feasible]
        if not feasible:
            rule = "there is a best trial once one satisfies all constraints"
            raise DataError(f"{rule}, but none of the {len(complete)} complete trials does")
        return max(feasible, key=lambda trial: (self._responses(trial), -trial.number))

    @property
    def front(self) -> tuple[Trial, ...]:
        """The complete, feasible trials that no other one equals or beats in all objectives and beats in one."""
        return front_of(self.trials, self._directions)

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Returns the next trial, or a list of `n` trials.

        A list has different configurations, none of which is running. A single trial repeats a configuration once the
        space has no other one.

        Raises:
          ConfigError: for a number below 1, or above that of the configurations that are left.

        Warns:
          DataWarning: if the past studies of the surrogate mislead, once a study. They are compared with the complete
            trials when there are 8, and whenever these have grown by a half; see `Sources.mislead`.
        """
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
            raise ConfigError(f"the number of trials to ask for must be at least 1, but got {n!r}")
        check_not_forked()  # before the lock, which a thread of the other process may have held
        with self._turn:
            for check, (name, direction) in zip(self._past_checks, self._directions.items(), strict=True):
                surrogate = self.surrogate if name is None else self.surrogates[name]
                check.warn_if_misleading(self._trials, direction, surrogate, name)
            batch: list[Params] = []
            n_enqueued = len(self._enqueued)
            for i in range(1 if n is None else n):
                is_enqueued = i < n_enqueued
                params, improvement, _ = self._suggest(batch, self._enqueued[i] if is_enqueued else None)
                improvement = math.inf if improvement is None else improvement
                self._improvements = [*self._improvements[1 - _PATIENCE :], improvement]
                if n is not None and not is_enqueued and (params in batch or self._is_running(params)):
                    rule = f"ask({n}) needs {n} different configurations that are not running"
                    remedy = f"ask for {len(batch)}" if batch else "tell a running trial first"
                    raise ConfigError(f"{rule}, but the space has {len(batch)}: {remedy}, or repeat one with ask()")
                batch.append(params)
            with self._lock:
                del self._enqueued[: len(batch)]
                trials = [replace(self._append(params), _study=self) for params in batch]
            return trials[0] if n is None else trials

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Adds values that the next trial must have, after those that wait already.

        Args:
          params: a configuration, or a part of one; the optimizer suggests the rest.

        Raises:
          DataError: for a hyperparameter that is unknown, or a value that it does not take.
        """
        values = self.space.check_part(params)
        with self._lock:
            self._enqueued.append(values)

    def expected_improvement(self) -> float:
        """Returns how much the next trial is expected to improve on the best value, in units of the values.

        This is the expected improvement of the best candidate (Jones, Schonlau and Welch 1998), times the probability
        that the candidate succeeds and is feasible. Infinite before the method suggests, and if all values are equal.

        Raises:
          ConfigError: for a method that has no expected improvement.
        """
        self._engine.require_improvement()
        with self._turn:
            improvement = self._suggest([], None).improvement
        return math.inf if improvement is None else improvement

    def gain_is_below(self, threshold: float) -> bool:
        """Returns whether the last ten suggestions each had an expected improvement below a threshold.

        Args:
          threshold: in units of the values.

        Raises:
          ConfigError: for a method that has no expected improvement, or a threshold that is not positive.
        """
        self._engine.require_improvement()
        if not threshold > 0:
            raise ConfigError(f"the threshold of the expected gain must be positive, but got {threshold!r}")
        return len(self._improvements) == _PATIENCE and max(self._improvements) < threshold

    def optimize(
        self,
        f: Callable[[Trial], float | Mapping[str, float]],
        n_trials: int | None = None,
        *,
        timeout: float | None = None,
        stop_when_gain_below: float | None = None,
        callbacks: Callback | Iterable[Callback] = (),
        catch: type[Exception] | Iterable[type[Exception]] = (),
        n_jobs: int = 1,
    ) -> None:
        """Asks, evaluates and tells.

        Args:
          f: the objective: the value of a trial, as `tell` takes it, NaN if it failed.
            `trial["x"]` is a value, `trial.params` has all.
          n_trials: number of further trials; by default as many as the time allows.
          timeout: seconds after which no trial starts; those that run are completed.
          stop_when_gain_below: no trial starts once `gain_is_below` is true of this number.
          callbacks: functions of the optimizer and a trial that has ended; or one function.
          catch: classes of exceptions of the objective after which the loop continues: the trial counts as failed.
          n_jobs: number of threads that call the objective.

        Raises:
          ConfigError: without a number of trials or a time-out, for a number that is not positive, a callback that is
            no function, or a class to catch that is no `Exception`.
          Exception: what the objective, unless it is caught, or a callback raises; the trial then counts as failed.

        Warns:
          DataWarning: for each exception that is caught.
        """
        TrialLoop(self, f, n_trials, timeout, stop_when_gain_below, callbacks, catch).run(n_jobs)

    def tell(
        self,
        trial: Trial | int,
        value: float | Mapping[str, float],
        *,
        stderr: float | None = None,
        cost: float | None = None,
        constraints: Mapping[str, float] = MappingProxyType({}),
    ) -> Trial:
        """Reports the value of a trial.

        Args:
          trial: as `ask` returned it, or its number.
          value: a number, also of NumPy, JAX or PyTorch; infinity is worse, or better, than all others. NaN makes the
            trial one that failed. With several objectives, a mapping of them to numbers.
          stderr: standard error of the value, for example over folds: a value with a large error counts less. The
            optimizer estimates the errors of other values. `recommended` uses it, and `gp`, the method without a
            surrogate.
          cost: of the trial, above 0, in any unit: seconds, say. Then trials are chosen by the expected improvement per
            unit of cost; see `EngineConfig.budget`.
          constraints: finite numbers by name, at most 0 where they are satisfied, for example ``{"memory": used -
            limit}``; the same names for all complete trials. Their sizes count, as the optimizer models each one.

        Returns:
          The trial as it is now.

        Raises:
          ConfigError: for a standard error that the surrogate's method does not use.
          DataError: if the trial is of another study or has ended already, the value is not a number, the standard
            error is not a finite number from 0, the cost is not finite and positive, or a constraint is not finite or
            not one of the study.
        """
        if stderr is not None:
            self._engine.require_standard_errors()
            stderr = objective_value(stderr, "the standard error of a value")
            if not 0 <= stderr < math.inf:
                raise DataError(f"the standard error of a value must be finite and at least 0, but got {stderr!r}")
        if cost is not None:
            cost = objective_value(cost, "the cost of a trial")
            if not 0 < cost < math.inf:
                raise DataError(f"the cost of a trial must be finite and positive, but got {cost!r}")
        values = objective_values(value, self.directions) if self.directions else {}
        number = None if values else objective_value(value)
        if any(math.isnan(one) for one in (values.values() if number is None else (number,))):
            return self.tell_failed(trial)
        with self._lock:
            checked = constraint_values(constraints, self._trials)
            forecast = self._curves.stopped.pop(find_trial(self._trials, trial).number, None)
            if forecast is not None:
                response = self._sign * forecast.response
                return self._finish(trial, "stopped", response, forecast.stderr, checked, cost=cost)
            return self._finish(trial, "complete", number, stderr, checked, values, cost)

    def report(self, trial: Trial | int, value: float, step: float) -> None:
        """Reports an intermediate value of a running trial, for example the validation loss after an epoch.

        Args:
          trial: as `ask` returned it, or its number.
          value: a number that would be the trial's value if it ended now; NaN counts as the worst.
          step: a number from 0, such as the epoch. The largest step of complete trials is the horizon of the study.
            A step that the trial has reported already removes later ones, as the trial runs again.

        Raises:
          DataError: if the trial is of another study or has ended already, or for numbers that are none.
        """
        step, number = checked_report(value, step)
        with self._lock:
            own = self._running(trial)
            self._curves.stopped.pop(own.number, None)
            runs_again = step in own._reports
            before = {s: v for s, v in own._reports.items() if s < step or not runs_again}
            self._trials[own.number] = replace(own, _reports={**before, step: number})

    def set_past_curves(self, past_curves: PastCurves | None) -> None:
        """Sets the learning curves of past studies, for `should_stop`. Raises `DataError` if they are none."""
        self._curves = StudyCurves(past_curves, self._engine.config.stopping_error)

    def should_stop(self, trial: Trial | int) -> bool:
        """Returns whether a running trial is to stop: its probability to become the best is below a bound.

        The bound is calibrated so that a share `EngineConfig.stopping_error` of the best trials may be stopped; see
        `dre_jax.tuning.curves.forecast`. The first six trials run to the end, three with `past_curves`. If a trial is
        told after True and no further report, its state is "stopped", and its value and standard error are those of the
        posterior of its final value, whatever value is told.

        Raises:
          DataError: if the trial is of another study or has ended already, or with several objectives.
        """
        if self.directions:
            raise DataError("should_stop needs a study of one objective")
        with self._lock:
            return self._curves.should_stop(self._running(trial), self._trials, self._sign)

    def tell_failed(self, trial: Trial | int) -> Trial:
        """Reports that a trial failed: its configuration is not proposed again, and others are where success is likely.

        Returns:
          The trial as it is now.

        Raises:
          DataError: as `tell`.
        """
        with self._lock:
            return self._finish(trial, "failed", None)

    def add(
        self,
        params: Mapping[str, Any],
        value: float | Mapping[str, float] | None,
        *,
        constraints: Mapping[str, float] = MappingProxyType({}),
    ) -> Trial:
        """Adds an external evaluation; the value is None if it failed. Constraints are those of `tell`.

        Raises:
          DataError: for a configuration of another space, or a value or constraint that `tell` refuses.
        """
        with self._lock:
            trial = self.add_running(params)
            try:
                return self.tell_failed(trial) if value is None else self.tell(trial, value, constraints=constraints)
            except DataError:
                self._trials.pop()
                raise

    def add_running(self, params: Mapping[str, Any]) -> Trial:
        """Adds an external evaluation that is running, to be told later.

        Raises:
          DataError: for a configuration of another space.
        """
        with self._lock:
            return self._append(self.space.check(params))

    def to_frame(self) -> Any:
        """Returns the trials as a data frame of pandas: number, state, value, constraints, and hyperparameters.

        A constraint's column has the prefix `constraints_`. A cell of a hyperparameter that is inactive is empty. A
        hyperparameter that is called like one of the other columns, or `task`, has the prefix `params_`. `from_frame`
        reads the frame with a column of task names.

        Raises:
          MissingExtraError: without pandas.
        """
        return trial_frame(self.trials, self.space)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the study to a file, completely or not at all.

        Raises:
          DataError: if the file cannot be written, or has trials that this study does not have, of another session for
            example; it stays unchanged.
        """
        with self._lock:
            origin: Any = origin_of(self.surrogate)
            if self.directions:
                origin = {name: origin_of(surrogate) for name, surrogate in self.surrogates.items()}
            state = (self._trials, self._enqueued, self._engine.config, origin)
            study = Study(self.space, self.directions or self._directions[None], self.seed, *state)
            file = os.path.realpath(path)
            self._stamps[file] = write_study(Path(path), study, known=self._stamps.get(file))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        surrogate: Surrogate | Mapping[str, Surrogate | None] | EllipsisType | None = ...,
        *,
        space: Space | None = None,
        config: EngineConfig | None = None,
    ) -> Optimizer:
        """Reads a study that `save` wrote. Running trials stay running: tell their values, or that they failed.

        Args:
          path: the file.
          surrogate: knowledge of past tasks, of which the file has the fingerprint only. A study with a surrogate needs
            it again; None continues without one.
          space: the expected space, its hyperparameters in any order; by default any.
          config: treatment of pending and failed trials; by default the study's.

        Raises:
          DataError: if the file is truncated, of another version, or not a study, or needs a surrogate; the file stays
            unchanged.

        Warns:
          DataWarning: for another surrogate than the study's.
        """
        path = Path(path)
        before = stamp(path)
        study = read_study(path)
        if space is not None and not study.space.is_reordered(space):
            raise DataError(f"{path} must hold a study of the space given, but holds one of {study.space!r}")
        config = study.config if config is None else config
        more: dict[str, Any] = {"seed": study.seed, "config": config}
        if isinstance(study.direction, str):
            more |= {"surrogate": resume_surrogate(path, study.origin, surrogate), "direction": study.direction}
        else:
            surrogates = resume_surrogates(path, study.origin, surrogate, study.direction)
            more |= {"surrogate": surrogates, "directions": study.direction}
        optimizer = cls(study.space, **more)
        optimizer._trials, optimizer._enqueued = list(study.trials), list(study.enqueued)
        optimizer._stamps[os.path.realpath(path)] = before
        n_complete = sum(t.state == "complete" for t in study.trials)
        optimizer._past_checks = [PastCheck(n_complete) for _ in optimizer._past_checks]
        return optimizer

    def _suggest(self, batch: Sequence[Params], fixed: Params | None) -> Suggestion:
        """Returns the suggestion after a batch that is not among the trials yet.

        Args:
          batch: configurations of the next trials.
          fixed: values that the configuration must have; None for none.
        """
        if fixed is not None:
            with contextlib.suppress(DataError):  # a part of a configuration
                return Suggestion(self.space.check(fixed))
        trials = self.trials
        suggestion = self._engine.propose(
            [
                Observation(
                    t._params, self._responses(t)[0], self._stderr(t), t._constraints, self._responses(t), t.cost
                )
                for t in trials
                if t.state in ("complete", "stopped")
            ],
            number=len(trials) + len(batch),
            pending=[*(t._params for t in trials if t.state == "running"), *batch],
            failed=[t._params for t in trials if t.state == "failed"],
            fixed=fixed,
        )
        params = suggestion.params
        params = params | {name: value for name, value in (fixed or {}).items() if name in params}  # to the last digit
        return suggestion._replace(params=params)

    def _is_running(self, params: Params) -> bool:
        return any(trial.state == "running" and trial._params == params for trial in self.trials)

    def _running(self, trial: Trial | int) -> Trial:
        own = find_trial(self._trials, trial)
        if own.state != "running":
            outcome = "failed" if own.state == "failed" else f"gave {own.values or own.value!r}"
            raise DataError(f"a trial is told once, but trial {own.number} {outcome} already")
        return own

    def _append(self, params: Params) -> Trial:
        self._trials.append(Trial(len(self._trials), params))
        return self._trials[-1]

    def _responses(self, trial: Trial) -> tuple[float, ...]:
        return responses_of(trial, self._directions)

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def _stderr(self, trial: Trial) -> float:
        """Returns a response's standard error; 0 for the posterior of a stopped trial if the method cannot use it."""
        is_usable = trial.state == "complete" or self._engine.uses_standard_errors
        return trial.stderr or 0.0 if is_usable else 0.0

    def _finish(
        self,
        trial: Trial | int,
        state: State,
        value: float | None,
        stderr: float | None = None,
        constraints: Mapping[str, float] = MappingProxyType({}),
        values: Mapping[str, float] = MappingProxyType({}),
        cost: float | None = None,
    ) -> Trial:
        own = self._running(trial)
        self._curves.stopped.pop(own.number, None)
        fields: dict[str, Any] = {"_constraints": dict(constraints), "_values": dict(values), "cost": cost}
        self._trials[own.number] = replace(own, state=state, value=value, stderr=stderr, **fields)
        return self._trials[own.number]
