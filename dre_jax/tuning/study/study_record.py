"""The record of a study: its trials, with their values and reports."""

import math
import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dre_jax.data.features import FeatureValue
from dre_jax.errors import DataError, DreError
from dre_jax.space.space import Params
from dre_jax.suggest.hypervolume import hypervolume
from dre_jax.summaries import summary
from dre_jax.tuning.curves.study_curves import StudyCurves, checked_report
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.fidelity.checkpoints import with_checkpoint
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.trainings import first_number, spent_by
from dre_jax.tuning.past.curves import PastCurves
from dre_jax.tuning.study.data_frame import frame_of
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import (
    AT_ANY_BUDGET,
    best_trials,
    find_objective,
    front_of,
    objective_values,
    reference_point,
    responses_of,
)
from dre_jax.tuning.trials.replicates import mean_and_error, measurements_of
from dre_jax.tuning.trials.responses import violation_of
from dre_jax.tuning.trials.trial import (
    VALUE,
    State,
    Trial,
    checked_cost,
    checked_stderr,
    constraint_values,
    find_trial,
)


class StudyRecord:
    """The trials of a study, which several threads may tell: the part of `Optimizer` that does not suggest."""

    def __init__(
        self,
        engine: Engine,
        past_curves: PastCurves | None,
        features: Mapping[str, FeatureValue] = MappingProxyType({}),
        fidelity: Fidelity | None = None,
    ) -> None:
        """Creates a record without trials.

        Args:
          engine: makes suggestions, and decides which standard errors can be used.
          past_curves: learning curves of past studies.
          features: features of the task.
          fidelity: the budgets of trials.
        """
        self.study_id = uuid.uuid4().hex[:16]
        """Identifies the study to trackers of experiments; its file keeps it."""
        self.space = engine.space
        self._engine = engine
        self.objectives = engine.objectives
        """Names and directions."""
        self.named_surrogates: Mapping[str, Surrogate | None] = engine.surrogates
        """Knowledge of past tasks by the name of the objective."""
        self.features: dict[str, FeatureValue] = dict(features)
        """What is known of the task before its first trial, by name; empty if nothing is."""
        self.fidelity = fidelity
        """The budgets of trials; None if every trial gives the final value."""
        self._trials: list[Trial] = []
        self._enqueued: list[Params] = []
        self._curves = StudyCurves(past_curves, engine.config.stopping_error)
        self._lock = threading.RLock()  # of the trials

    def __repr__(self) -> str:
        """The space, the objectives, the past tasks and the progress of the study; without the trials."""
        trials, directions = self.trials, self.directions or None
        best = best_trials(trials, self.objectives)
        methods = {name: surrogate.name for name, surrogate in self.named_surrogates.items() if surrogate is not None}
        return summary(
            self,
            hyperparameters=list(self.space),
            direction=self.direction,
            directions=directions,
            surrogate=(methods if directions else methods[VALUE]) if methods else None,
            features=self.features or None,
            n_trials=len(trials),
            best=best[0].value if best and not directions else None,
            n_front=len(best) if directions else None,
        )

    def importance(self, *, objective: str | None = None) -> dict[str, float]:
        """Returns how far each hyperparameter decides which trials are the best: shares of 1, the largest first.

        Optuna's PED-ANOVA computes them (Watanabe, Bansal and Hutter 2023), as the figure `Importance` shows them.
        Hyperparameters that some complete trials do not have are left out.

        Args:
          objective: which of several.

        Raises:
          ConfigError: for an unknown objective.
          DataError: before two complete trials have different values.
          MissingExtraError: without Optuna.

        Example:
          >>> from dre_jax.tuning import Float, Optimizer
          >>> optimizer = Optimizer({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)}, seed=0)
          >>> optimizer.optimize(lambda trial: trial["x"] ** 2 + 0.001 * trial["y"], 12)
          >>> list(optimizer.importance())
          ['x', 'y']
        """
        from dre_jax.tuning.figures.importance import importance_of

        name, direction = find_objective(self.objectives, objective)
        trials = [trial.with_objective(name) for trial in self.trials]
        return importance_of(self.space, trials, direction)

    @property
    def direction(self) -> str | None:
        """The direction of the objective; None with several objectives."""
        return None if self.directions else self.objectives[0].direction

    @property
    def directions(self) -> dict[str, str]:
        """The directions of several objectives by name; empty with one objective."""
        return dict(self.objectives) if len(self.objectives) > 1 else {}

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order of their numbers."""
        with self._lock:
            return tuple(self._trials)

    @property
    def enqueued(self) -> tuple[Params, ...]:
        """Values that the next trials must have, in order, as `Optimizer.enqueue` got them; copies."""
        with self._lock:
            return tuple(map(dict, self._enqueued))

    @property
    def best(self) -> Trial:
        """The complete, feasible trial in the space with the best value, the first of equal ones.

        The value of a configuration that was repeated is the mean of its measurements, in the first of its trials.
        Raises `DataError` without any, and with several objectives, which have a `front`.
        """
        if self.directions:
            raise DataError("a study of several objectives has no best trial: front has its best trade-offs")
        complete = [trial for trial in self.trials if trial.state == "complete" and trial.in_space]
        if not complete:
            is_outside = any(trial.state == "complete" for trial in self.trials)
            which = "one in the space" if is_outside else "one"
            raise DataError(f"there is a best trial once {which} is complete, but none is")
        best = best_trials(complete, self.objectives)
        if not best:
            rule = "there is a best trial once one satisfies all constraints"
            raise DataError(f"{rule}, but none of the {len(complete)} complete trials does")
        return best[0]

    @property
    def best_so_far(self) -> Trial:
        """The feasible trial in the space with the best value at any budget; `best` without a fidelity.

        `Trial.budget` is its budget. Raises `DataError` before a trial has a value, and with several objectives, which
        have a `front_so_far`.
        """
        if self.fidelity is None:
            return self.best
        if self.directions:
            rule = "a study of several objectives has no best trial"
            raise DataError(
                f"{rule}: front_so_far has the best trade-offs at any budget, front those at the highest one"
            )
        best = best_trials(self.trials, self.objectives, AT_ANY_BUDGET)
        if not best:
            raise DataError("there is a best trial so far once a feasible one has a value, but none has")
        return best[0]

    @property
    def total_budget(self) -> float:
        """The budget that all trials have trained for, in units of the fidelity; running ones count to their end."""
        trials = self.trials
        return sum(spent_by(trial, trials) for trial in trials)

    @property
    def front(self) -> tuple[Trial, ...]:
        """The Pareto-optimal trials among the complete, feasible ones in the space; see `front_so_far` for budgets."""
        return front_of(self.trials, self.objectives)

    @property
    def front_so_far(self) -> tuple[Trial, ...]:
        """The Pareto-optimal trials among the feasible ones in the space at any budget; `front` without a fidelity.

        `Trial.budget` is the budget of each. A training may have several trials in this front.
        """
        return front_of(self.trials, self.objectives, AT_ANY_BUDGET)

    @property
    def hypervolume(self) -> float:
        """The hypervolume between the front and `EngineConfig.reference_point`, in units of the objectives.

        Values that do not improve on the point in all objectives add nothing. Raises `ConfigError` without a point.
        """
        reference = reference_point(self._engine.config.reference_point, self.objectives)
        values = [responses_of(trial, self.objectives) for trial in self.front]
        return hypervolume(np.reshape(values, (-1, len(reference))), reference)

    @property
    def least_infeasible(self) -> tuple[Trial, ...]:
        """The complete trials in the space by their violation of the constraints, the least first; empty without any.

        Violations of several constraints are added. Feasible trials come first, in the order of `trials`, then those
        whose known constraints are satisfied.

        Example:
          >>> from dre_jax.tuning import Float, Optimizer, Space
          >>> optimizer = Optimizer(Space({"x": Float(0.0, 1.0)}))
          >>> for excess in (3.0, 1.0, 2.0):
          ...     trial = optimizer.tell(optimizer.ask(), 0.0, constraints={"memory": excess})
          >>> [trial.number for trial in optimizer.least_infeasible]
          [1, 2, 0]
        """
        complete = [trial for trial in self.trials if trial.state == "complete" and trial.in_space]
        return tuple(sorted(complete, key=lambda trial: (violation_of(trial), not trial.is_feasible)))

    def tell(
        self,
        trial: Trial | int,
        value: float | Mapping[str, float] | Sequence[float],
        *,
        stderr: float | None = None,
        cost: float | None = None,
        constraints: Mapping[str, float | None] = MappingProxyType({}),
    ) -> Trial:
        """Reports the value of a trial. Below the highest budget of a study with a fidelity, the trial is then paused.

        Args:
          trial: as `ask` returned it, or its number.
          value: a number, also of NumPy, JAX or PyTorch; infinity is worse, or better, than all others. NaN makes the
            trial a failed one. A list of several measurements counts as their mean, with its standard error. With
            several objectives, a mapping of them to numbers, or a tuple or list in the order of `directions`.
          stderr: standard error of the value, for example over folds: a value with a large error counts less. The
            optimizer estimates the errors of other values. `recommended` uses it, and `gp`, the method without a
            surrogate. None with a list of measurements, which have an error of their own.
          cost: of the trial, above 0, in any unit: seconds, say. Then trials are chosen by the expected improvement per
            unit of cost; see `EngineConfig.budget`.
          constraints: finite numbers by name, at most 0 where they are satisfied, for example ``{"memory": used -
            limit}``; the same names for all complete trials. Their sizes count, as the optimizer models each one. None
            or NaN is a number that is unknown: the trial is not feasible, and the model of the others decides.

        Returns:
          The trial as it is now.

        Raises:
          ConfigError: for a standard error that the surrogate's method does not use.
          DataError: if the trial is of another study or has ended already, the value is not a number, the standard
            error is not a finite number from 0, the cost is not finite and positive, or a constraint is infinite or
            not one of the study.
        """
        if stderr is not None:
            self.require_standard_errors()
            stderr = checked_stderr(stderr)
        if cost is not None:
            cost = checked_cost(cost)
        measurements = () if self.directions else measurements_of(value)
        if len(measurements) > 1 and stderr is not None:
            raise DataError("a list of measurements has a standard error of its own: tell it without stderr")
        if measurements:
            value, stderr = mean_and_error(measurements, stderr)
        values = objective_values(value, self.objectives)
        if any(map(math.isnan, values.values())):
            return self.tell_failed(trial, cost=cost)
        number = None if self.directions else values.pop(VALUE)
        with self._lock:
            checked_constraints = constraint_values(constraints, self._trials)
            forecast = self._curves.stopping_forecasts.pop(find_trial(self._trials, trial).number, None)
            fields: dict[str, Any] = {"constraints": checked_constraints, "cost": cost}
            if forecast is not None:
                response = self._sign * forecast.response
                return self._finish(trial, "stopped", response, stderr=forecast.stderr, **fields)
            state: State = "paused" if self._is_below_highest(trial) else "complete"
            fields["measurements"] = measurements if len(measurements) > 1 else ()
            return self._finish(trial, state, number, stderr=stderr, values=values, **fields)

    def require_standard_errors(self) -> None:
        """Raises `ConfigError` if `tell` takes no standard errors: of several objectives, or a method without noise."""
        self._engine.criterion.require_standard_errors()

    def _is_below_highest(self, trial: Trial | int) -> bool:
        budget = find_trial(self._trials, trial).budget
        return self.fidelity is not None and budget is not None and budget < self.fidelity.highest

    def report(self, trial: Trial | int, value: float, step: float) -> None:
        """Reports an intermediate value of a running trial, for example the validation loss after an epoch.

        Args:
          trial: as `ask` returned it, or its number.
          value: a number that would be the trial's value if it ended now; NaN counts as the worst.
          step: a number from 0, such as the epoch. The largest step of complete trials is the horizon of the study.
            A step that the trial has reported already removes later ones, as the trial runs again.

        Raises:
          DataError: if the trial is of another study or has ended already, for values that are not numbers, or with
            several objectives.
        """
        if self.directions:
            raise DataError("report needs a study of one objective")
        step, number = checked_report(value, step)
        with self._lock:
            current_trial = self._running(trial)
            self._curves.stopping_forecasts.pop(current_trial.number, None)
            runs_again = step in current_trial._reports
            before = {s: v for s, v in current_trial._reports.items() if s < step or not runs_again}
            self._trials[current_trial.number] = current_trial.with_fields(reports={**before, step: number})

    def set_past_curves(self, past_curves: PastCurves | None) -> None:
        """Sets the learning curves of past studies, for `should_stop`. Raises `DataError` for any other argument."""
        self._curves = StudyCurves(past_curves, self._engine.config.stopping_error)

    def should_stop(self, trial: Trial | int) -> bool:
        """Returns whether a running trial is to stop: its probability to become the best is below a bound.

        The bound is calibrated so that a share `EngineConfig.stopping_error` of the best trials may be stopped; see
        `dre_jax.tuning.curves.forecast`. The first six trials run to the end, three with `past_curves`. If `tell`
        follows True without another report, the trial's state is "stopped". Its value and standard error are then those
        of the posterior of its final value, whatever value `tell` gets.

        Raises:
          DataError: if the trial is of another study or has ended already, or with several objectives.
        """
        if self.directions:
            raise DataError("should_stop needs a study of one objective")
        if self.fidelity is not None:
            raise DataError("a study with a fidelity pauses trials by itself, so that should_stop has nothing to stop")
        with self._lock:
            in_space = [other for other in self._trials if other.in_space]
            return self._curves.should_stop(self._running(trial), in_space, self._sign)

    def restart(self, trial: Trial | int) -> Trial:
        """Says that the checkpoint that a running trial was to resume is lost: it trains from nothing to its budget.

        Args:
          trial: as `ask` returned it, or its number. One that resumes none stays as it is.

        Returns:
          The trial as it is now.

        Raises:
          DataError: if the trial is of another study or has ended already.
        """
        with self._lock:
            current_trial = self._running(trial)
            if current_trial.resumes is not None:
                current_trial = current_trial.with_fields(restarts=True, reports={})
            self._trials[current_trial.number] = current_trial
            return current_trial

    def with_checkpoint(self, trial: Trial | int, checkpoints: str | os.PathLike[str]) -> Trial:
        """Returns a trial with `Trial.checkpoint`, a folder of its training that exists, as `optimize` gives it.

        Args:
          trial: as `ask` returned it, or its number.
          checkpoints: the folder of all trainings.

        Raises:
          DataError: if the trial is of another study, or the folder cannot be made.
        """
        trials = self.trials
        current_trial = find_trial(trials, trial).with_fields(study=self)
        return with_checkpoint(current_trial, first_number(current_trial, trials), Path(checkpoints))

    def repeat(self, trial: Trial | int) -> Trial:
        """Starts a trial that measures the configuration of an earlier one again, where values have noise.

        All measurements of a configuration count: `best` is the trial with the best mean, and the error of a single
        measurement, as all repeats estimate it, is that of every value.

        Args:
          trial: complete, as `ask` returned it, or its number.

        Returns:
          The new trial, which is running; `Trial.repeats` is the number of the first trial of its configuration.

        Raises:
          DataError: if the trial is of another study or not complete, with several objectives, or with a fidelity.

        Example:
          >>> from dre_jax.tuning import Float, Optimizer
          >>> optimizer = Optimizer({"x": Float(0.0, 1.0)})
          >>> first = optimizer.tell(optimizer.ask(), 1.0)
          >>> second = optimizer.tell(optimizer.repeat(first), 3.0)
          >>> second.repeats, optimizer.best.value, optimizer.best.n_measurements
          (0, 2.0, 2)
        """
        if self.directions or self.fidelity is not None:
            raise DataError("repeat needs a study of one objective, without a fidelity")
        with self._lock:
            current_trial = find_trial(self._trials, trial)
            if current_trial.state != "complete" or not current_trial.in_space:
                state = current_trial.state if current_trial.in_space else "outside of the space"
                raise DataError(f"repeat needs a complete trial, but trial {current_trial.number} is {state}")
            first = current_trial.number if current_trial.repeats is None else current_trial.repeats
            return self._append(current_trial.params, repeats=first)

    def tell_failed(self, trial: Trial | int, *, cost: float | None = None) -> Trial:
        """Reports that a trial failed. Later trials avoid its configuration, and prefer those where success is likely.

        Args:
          trial: as `ask` returned it, or its number.
          cost: of the trial, as in `tell`; it counts as spent of `EngineConfig.budget`.

        Returns:
          The trial as it is now.

        Raises:
          DataError: as `tell`.
        """
        cost = None if cost is None else checked_cost(cost)
        with self._lock:
            return self._finish(trial, "failed", None, cost=cost)

    def add(
        self,
        params: Mapping[str, Any],
        value: float | Mapping[str, float] | Sequence[float] | None,
        *,
        stderr: float | None = None,
        cost: float | None = None,
        constraints: Mapping[str, float | None] = MappingProxyType({}),
        budget: float | None = None,
    ) -> Trial:
        """Adds an external evaluation; the value is None if it failed. The other arguments are those of `tell`.

        Below the highest ``budget`` of a study with a fidelity, which is the default, the evaluation is a paused trial,
        which may be resumed.

        Raises:
          ConfigError: for a standard error that the surrogate's method does not use.
          DataError: for a configuration of another space, or a budget that the fidelity does not have; and as `tell`.
        """
        with self._lock:
            trial = self.add_running(params, budget=budget)
            try:
                if value is None:
                    return self.tell_failed(trial, cost=cost)
                return self.tell(trial, value, stderr=stderr, cost=cost, constraints=constraints)
            except DreError:
                self._trials.pop()
                raise

    def add_running(self, params: Mapping[str, Any], *, budget: float | None = None) -> Trial:
        """Adds an external evaluation that is running; `tell` reports its value later.

        Raises:
          DataError: for a configuration of another space, or a budget that the fidelity does not have.
        """
        if self.fidelity is not None:
            budget = self.fidelity.highest if budget is None else self.fidelity.check(budget)
        elif budget is not None:
            raise DataError(f"a budget needs a study with a fidelity, but got {budget!r}")
        with self._lock:
            return self._append(self.space.check(params), budget=budget)

    def to_frame(self) -> Any:
        """Returns the trials as a data frame of pandas: number, state, value, constraints, and hyperparameters.

        The frame has columns of standard errors, costs and budgets if a trial has them, and `in_space` if a trial is
        outside of the space (`Trial.in_space`). A constraint's column has the prefix `constraints_`. A cell of a
        hyperparameter that is inactive is empty. A hyperparameter with the name of another column, or `task`, has the
        prefix `params_`. `from_frame` reads the frame, with a column of task names or `task=None`.

        Raises:
          MissingExtraError: without pandas.
        """
        return frame_of(self.space, self.trials)

    def _running(self, trial: Trial | int) -> Trial:
        current_trial = find_trial(self._trials, trial)
        if current_trial.state != "running":
            values = current_trial.values or current_trial.value
            outcome = "failed" if current_trial.state == "failed" else f"gave {values!r}"
            rule = "a trial is told once, and another measurement needs repeat"
            raise DataError(f"{rule}, but trial {current_trial.number} {outcome} already")
        return current_trial

    def _append(
        self, params: Params, *, budget: float | None = None, resumes: int | None = None, repeats: int | None = None
    ) -> Trial:
        earlier = repeats if resumes is None else resumes
        former = None if earlier is None else self._trials[earlier]._former
        fields: dict[str, Any] = {"budget": budget, "resumes": resumes, "repeats": repeats, "former": former}
        self._trials.append(Trial(len(self._trials), params, **fields))
        return self._trials[-1]

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "maximize" else -1.0

    def _finish(self, trial: Trial | int, state: State, value: float | None, **fields: Any) -> Trial:
        current_trial = self._running(trial)
        self._curves.stopping_forecasts.pop(current_trial.number, None)
        self._trials[current_trial.number] = current_trial.with_fields(state=state, value=value, **fields)
        return self._trials[current_trial.number]
