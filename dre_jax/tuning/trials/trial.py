"""Trials of a study, and the checks of their values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from dre_jax.errors import DataError
from dre_jax.space.scalars import Value, plain_value
from dre_jax.space.space import Params

VALUE = "value"
"""Name of the objective of a study that has one."""
State = Literal["running", "complete", "paused", "stopped", "failed"]


@dataclass(frozen=True, init=False, repr=False)
class Trial:
    """One evaluation.

    `trial["x"]` is the value of the hyperparameter `x`, and `train(**trial)` passes all values.

    Example:
      >>> trial = Trial(0, {"x": 0.5})
      >>> trial["x"], trial.state
      (0.5, 'running')
    """

    number: int
    """Number from 0, in the order of `ask`."""
    state: State
    """Running, complete, paused below the highest budget, stopped early or failed."""
    value: float | None
    """The objective's value if the trial is complete or paused, its posterior mean if the trial was stopped; None with
    several objectives."""
    stderr: float | None
    """The value's standard error; None without one."""
    measurements: tuple[float, ...]
    """The measurements that the value is the mean of; empty if `Optimizer.tell` got a single number."""
    repeats: int | None
    """The number of the first trial of the same configuration, which this one measures again; None for a new one."""
    cost: float | None
    """The cost that `Optimizer.tell` got, if any."""
    budget: float | None
    """The budget to train until, as `Fidelity` has it; None in a study without one."""
    resumes: int | None
    """The number of the trial whose training this one continues, from its checkpoint; None to start from nothing."""
    restarts: bool
    """Whether that checkpoint was lost, so that the trial starts from nothing; see `restart`."""
    checkpoint: Path | None = field(compare=False)
    """The folder of the training's checkpoints, the same for all trials of a training, in a study of `optimize` with
    ``checkpoints``; None otherwise."""
    in_space: bool
    """Whether the configuration is one of the study's space; False after `Optimizer.with_space` left it outside."""
    _params: Mapping[str, Value]
    _former: Mapping[str, Value]
    _constraints: Mapping[str, float]
    _reports: Mapping[float, float]
    _values: Mapping[str, float]
    _stderrs: Mapping[str, float]
    _study: Any = field(compare=False)

    def __init__(
        self,
        number: int,
        params: Mapping[str, Value],
        state: State = "running",
        value: float | None = None,
        stderr: float | None = None,
        constraints: Mapping[str, float] | None = None,
        reports: Mapping[float, float] | None = None,
        values: Mapping[str, float] | None = None,
        cost: float | None = None,
        study: Any = None,
        budget: float | None = None,
        resumes: int | None = None,
        restarts: bool = False,
        checkpoint: Path | None = None,
        measurements: tuple[float, ...] = (),
        repeats: int | None = None,
        in_space: bool = True,
        former: Mapping[str, Value] | None = None,
        stderrs: Mapping[str, float] | None = None,
    ) -> None:
        """Creates a trial. It keeps the mappings as they are, so they must not change.

        Args:
          number: from 0.
          params: the configuration.
          state: of the trial.
          value: of a single objective.
          stderr: the value's standard error.
          constraints: by name.
          reports: intermediate values by step.
          values: of several objectives, by name.
          cost: of the trial.
          study: the study that `report`, `should_stop` and `restart` call.
          budget: to train until.
          resumes: the number of the trial that it continues.
          restarts: whether it starts from nothing all the same.
          checkpoint: the folder of the training's checkpoints.
          measurements: that the value is the mean of.
          repeats: the number of the first trial of the configuration.
          in_space: whether the configuration is one of the study's space.
          former: values that only earlier spaces of the study had.
          stderrs: standard errors of the values of several objectives, by name.
        """
        self.__dict__.update(number=number, state=state, value=value, stderr=stderr, cost=cost)
        self.__dict__.update(budget=budget, resumes=resumes, restarts=restarts, checkpoint=checkpoint)
        self.__dict__.update(measurements=measurements, repeats=repeats, in_space=in_space, _former=former or {})
        self.__dict__.update(_params=params, _constraints=constraints or {}, _reports=reports or {})
        self.__dict__.update(_values=values or {}, _stderrs=stderrs or {}, _study=study)

    def with_fields(self, **fields: Any) -> Trial:
        """Returns the trial with other values of some arguments.

        Example:
          >>> Trial(0, {"x": 0.5}).with_fields(state="complete", value=2.0)
          Trial(number=0, params={'x': 0.5}, state='complete', value=2.0)
        """
        return Trial(**{name.removeprefix("_"): value for name, value in self.__dict__.items()} | fields)

    @property
    def n_measurements(self) -> int:
        """How many measurements the value is the mean of: 1 for a single number, 0 without a value."""
        return len(self.measurements) or int(self.value is not None)

    @property
    def has_value(self) -> bool:
        """Whether the trial has a value, or those of several objectives."""
        return self.value is not None or bool(self._values)

    @property
    def values(self) -> dict[str, float]:
        """Values of several objectives by name, of a complete or paused trial; empty with one objective. A copy."""
        return dict(self._values)

    @property
    def stderrs(self) -> dict[str, float]:
        """Standard errors of the values of several objectives by name; empty without any. A copy."""
        return dict(self._stderrs)

    def with_objective(self, name: str) -> Trial:
        """Returns the trial with one of several objectives as its value, as `past_of` and `Surrogate.sources` read it.

        Args:
          name: of the objective; "value" for the only one.

        Raises:
          DataError: if a complete trial has no such objective.
        """
        if name == VALUE and not self._values:
            return self
        if self.state == "complete" and name not in self._values:
            raise DataError(f"the objectives of trial {self.number} are {list(self._values)}, but got {name!r}")
        value, stderr = self._values.get(name), self._stderrs.get(name)
        return self.with_fields(value=value, stderr=stderr, values={}, stderrs={})

    @property
    def reports(self) -> dict[float, float]:
        """Intermediate values by step, as `report` got them; a copy."""
        return dict(self._reports)

    def report(self, value: float, step: float) -> None:
        """Reports an intermediate value of the running trial, of the objective's kind; see `Optimizer.report`."""
        self._require_study().report(self, value, step)

    def should_stop(self) -> bool:
        """Returns whether this trial will hardly become the best; see `Optimizer.should_stop`."""
        return bool(self._require_study().should_stop(self))

    def restart(self) -> None:
        """Says that the checkpoint of a running trial was lost: it starts from nothing; see `Optimizer.restart`."""
        self._require_study().restart(self)

    def _require_study(self) -> Any:
        if self._study is None:
            raise DataError(f"trial {self.number} must be as `ask` returned it, to report values, but is a copy")
        return self._study

    def __getstate__(self) -> dict[str, Any]:
        """Returns the trial without its study."""
        return self.__dict__ | {"_study": None}

    @property
    def constraints(self) -> dict[str, float]:
        """Values of the constraints by name, as `Optimizer.tell` got them, NaN where unknown; a copy."""
        return dict(self._constraints)

    @property
    def is_feasible(self) -> bool:
        """Whether all constraints are known to be at most 0, as they are where there are none."""
        return all(value <= 0 for value in self._constraints.values())

    @property
    def params(self) -> Params:
        """The configuration: Python values by name. A copy, so that changes to it do not change the study."""
        return dict(self._params)

    @property
    def former(self) -> Params:
        """Values of hyperparameters that only earlier spaces of the study had, see `Optimizer.with_space`; a copy."""
        return dict(self._former)

    def keys(self) -> Iterable[str]:
        """Returns the names of the active hyperparameters."""
        return self._params.keys()

    __iter__: ClassVar[None] = None
    """A trial has no order: neither of its fields nor of its hyperparameters."""

    def __getitem__(self, name: str) -> Value:
        return self._params[name]

    def __repr__(self) -> str:
        optional_fields = f", n_measurements={self.n_measurements}" if self.n_measurements > 1 else ""
        optional_fields += "" if self.stderr is None else f", stderr={self.stderr!r}"
        optional_fields += "" if self.repeats is None else f", repeats={self.repeats}"
        optional_fields += "" if self.cost is None else f", cost={self.cost!r}"
        optional_fields += "" if self.budget is None else f", budget={self.budget!r}"
        optional_fields += "" if self.resumes is None else f", resumes={self.resumes}"
        optional_fields += f", constraints={self.constraints}" if self._constraints else ""
        optional_fields += "" if self.in_space else ", in_space=False"
        value = f"values={self.values}" if self._values else f"value={self.value!r}"
        return f"Trial(number={self.number}, params={self.params}, state={self.state!r}, {value}{optional_fields})"


def outcome_of(trial: Any) -> str:
    """Returns the state of a trial of this library or of Optuna in lower case; "complete" for any other evaluation.

    Example:
      >>> outcome_of(Trial(0, {"x": 0.5})), outcome_of({"x": 0.5})
      ('running', 'complete')
    """
    state = getattr(trial, "state", "complete")
    return str(getattr(state, "name", state)).lower()


def checked_cost(cost: Any, subject: str = "the cost of a trial") -> float:
    """Returns a cost as a number; raises `DataError`, which names the subject, unless it is finite and positive."""
    number = objective_value(cost, subject)
    if not 0 < number < math.inf:
        raise DataError(f"{subject} must be finite and positive, but got {number!r}")
    return number


def checked_stderr(stderr: Any, subject: str = "the standard error of a value") -> float:
    """Returns a standard error as a number; raises `DataError`, which names the subject, unless finite and from 0."""
    number = objective_value(stderr, subject)
    if not 0 <= number < math.inf:
        raise DataError(f"{subject} must be finite and at least 0, but got {number!r}")
    return number


def find_trial(trials: Sequence[Trial], trial: Trial | int) -> Trial:
    """Returns the present state of a study's trial, by its number or an earlier state.

    Raises `DataError` if the study does not have the trial.
    """
    number = trial.number if isinstance(trial, Trial) else trial
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise DataError(f"a trial must be as `ask` returned it, or its number, but got {trial!r}")
    if not 0 <= number < len(trials):
        raise DataError(f"a trial must be one of the {len(trials)} of this study, but got number {number}")
    current_trial = trials[number]
    if isinstance(trial, Trial) and not _is_earlier_state(trial, current_trial):
        mismatch = f"trial {number} is {current_trial.params!r}, not {trial.params!r}"
        raise DataError(f"a trial must be of this study, but {mismatch}")
    return current_trial


def _is_earlier_state(trial: Trial, current: Trial) -> bool:
    """Returns whether two states of a trial have the same configuration, also in an earlier space of the study."""
    known = {**current._former, **current._params}
    return trial._params == current._params or all(known.get(name, ...) == trial[name] for name in trial._params)


def objective_value(value: Any, subject: str = "the value of a trial") -> float:
    """Returns a number of Python, NumPy, JAX or PyTorch as a float; a whole number beyond all floats becomes infinite.

    NaN is always the object `math.nan`, so that equal trials are equal.

    Raises `DataError`, which names the subject, for anything else.
    """
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{subject} must be a number, but got {value!r}")
    try:
        return math.nan if math.isnan(value) else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def constraint_values(constraints: Any, trials: Iterable[Trial] = ()) -> dict[str, float]:
    """Returns the constraints of a trial as floats, NaN for those that are unknown, which may also be None.

    Raises `DataError` for other names than those of the study's complete trials, or values that are infinite or no
    numbers.
    """
    if not isinstance(constraints, Mapping) or not all(isinstance(name, str) for name in constraints):
        raise DataError(f"constraints must map names to numbers, but got {constraints!r}")
    numbers = {name: math.nan if value is None else value for name, value in constraints.items()}
    values = {name: objective_value(value, f"constraint {name!r}") for name, value in numbers.items()}
    for name, value in values.items():
        if math.isinf(value):
            raise DataError(f"constraint {name!r} must be a finite number, but got {value!r}")
    study_values = next((trial._constraints for trial in trials if trial.state == "complete"), values)
    if study_values.keys() != values.keys():
        names, received_names = (", ".join(map(repr, sorted(mapping))) or "none" for mapping in (study_values, values))
        raise DataError(
            f"all trials of a study must have the same constraints, which are {names}, but got {received_names}"
        )
    return values
