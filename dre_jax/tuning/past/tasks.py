"""Past evaluations of a search space: the tasks that a surrogate learns from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.checks import show
from dre_jax.data.features import FeatureSpace, FeatureType
from dre_jax.data.spaces import SearchSpace, Task
from dre_jax.errors import DataError
from dre_jax.methods.start_configurations import start_rows
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.space.space import Params, Space
from dre_jax.summaries import summary
from dre_jax.tuning.past.overlap import SpaceChanges, absent_names, with_absence
from dre_jax.tuning.past.task_features import check_features, describe_features, encode_features
from dre_jax.tuning.trials.objectives import DIRECTIONS
from dre_jax.tuning.trials.responses import clip_responses, rank_infeasible_last, violation_of
from dre_jax.tuning.trials.trial import checked_cost, objective_value, outcome_of

MIN_CONFIGURATIONS = 3
"""Minimum number of different configurations with a value of a past task."""
_MAX_REASONS = 3  # in a message


class Evaluated(NamedTuple):
    """A configuration and its value.

    Example:
      >>> Evaluated({"x": 0.5}, 2.0).value
      2.0
    """

    params: Mapping[str, Any]
    """Values by name."""
    value: float
    """The value in the task's direction; may be infinite."""
    cost: float | None = None
    """Cost of the evaluation, above 0, in the unit of the task's other costs; None if it is unknown."""
    constraints: Mapping[str, float] | None = None
    """Constraints by name: at most 0 where satisfied, NaN where unknown; None without constraints."""


class Exclusion(NamedTuple):
    """Why a task, or some of its trials, is left out."""

    name: str
    """Name of the task."""
    reason: str
    """The rule, and the value that violates it."""

    def __str__(self) -> str:
        """One line about the exclusion."""
        return f"{self.name}: {self.reason}"

    @classmethod
    def of_trials(cls, name: str, reasons: Sequence[str]) -> Exclusion:
        """Returns the exclusion of trials of a task, with the first of their reasons."""
        return cls(name, f"{reasons[0]}{f' ({len(reasons)} trials)' if len(reasons) > 1 else ''}")

    @classmethod
    def of_outcomes(cls, name: str, outcomes: Sequence[str]) -> Exclusion:
        """Returns the exclusion of trials of a task that are not complete, by their states.

        Example:
          >>> print(Exclusion.of_outcomes("a", ["failed", "running", "failed"]))
          a: a trial must be complete, but is failed (2 trials), running (1 trial)
        """
        numbers = Counter(outcomes)
        states = [f"{outcome} ({n} trial{'s' * (n > 1)})" for outcome, n in numbers.items()]
        return cls(name, f"a trial must be complete, but is {outcomes[0] if len(outcomes) == 1 else ', '.join(states)}")


@dataclass(frozen=True, eq=False, repr=False)
class Past:
    """Tasks of one search space or of overlapping ones, encoded.

    Example:
      >>> from dre_jax.tuning import Float
      >>> len(Past(Space({"x": Float(0.0, 1.0)})))
      0
    """

    space: Space
    """The search space, with an encoding of hyperparameters that some tasks do not have."""
    tasks: dict[str, Task] = field(default_factory=dict)
    """Tasks by name, with columns as the space encodes them, and responses to maximise."""
    exclusions: tuple[Exclusion, ...] = ()
    """Tasks and trials that do not fit, with the reason."""
    direction: str | None = None
    """Direction of the tasks' values before they were turned into responses, "minimize" or "maximize"; None if the
    tasks have both directions, or if only their responses exist."""
    metric: str | None = None
    """Name of the values, if they have one."""
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hyperparameters of the space that past tasks do not have, with the names of these tasks."""
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Hyperparameters that only past tasks have, with the names of these tasks; their values are not used."""
    constrained: bool = False
    """Whether trials violate constraints, which ranks them below all others of their task."""
    features: FeatureSpace | None = None
    """Features of the tasks, whose values are in `Task.features`; None if there are none to learn from."""
    unused_features: Mapping[str, str] = field(default_factory=dict)
    """Features that are not used, with the reason."""

    def __post_init__(self) -> None:
        if self.direction is not None:
            one_of("direction", self.direction, DIRECTIONS)

    def __repr__(self) -> str:
        n_trials = sum(task.n_rows for task in self.tasks.values())
        facts: dict[str, Any] = {"direction": self.direction, "metric": self.metric}
        facts["features"] = None if self.features is None else list(self.features.types)
        return summary(self, hyperparameters=list(self.space), tasks=list(self.tasks), n_trials=n_trials, **facts)

    def search_space(self, name: str = "past") -> SearchSpace:
        """The tasks as training tasks, for everything that takes a search space of HPO-B's form."""
        return SearchSpace(name, train=dict(self.tasks), columns=self.space.columns)

    def __len__(self) -> int:
        return len(self.tasks)


def describe_exclusions(past: Past) -> str:
    """Returns one line about past tasks that are left out, wholly or in part; empty if there are none."""
    names = dict.fromkeys(exclusion.name for exclusion in past.exclusions)
    missing, partial = ([name for name in names if (name in past.tasks) is is_kept] for is_kept in (False, True))
    counts = [f"{len(missing)} of {len(missing) + len(past.tasks)} past tasks are"] if missing else []
    noun = f"{'other ' if missing else ''}past task{'s' * (len(partial) > 1)}"
    counts += [f"trials of {len(partial)} {noun} are"] if partial else []
    if not counts:
        return ""
    reasons = [
        str(next(exclusion for exclusion in past.exclusions if exclusion.name == name)) for name in [*missing, *partial]
    ]
    first, ellipsis = "; ".join(reasons[:_MAX_REASONS]), "; ..." if len(reasons) > _MAX_REASONS else ""
    return f"{' and '.join(counts)} left out (Past.exclusions lists the reasons): {first}{ellipsis}"


def describe_changes(past: Past) -> str:
    """Returns one line about hyperparameters and features that past tasks do not have, or only they; empty if none.

    Example:
      >>> from dre_jax.tuning import Float
      >>> space, tasks = Space({"dropout": Float(0.0, 0.5)}), dict.fromkeys("abc")
      >>> describe_changes(Past(space, tasks, absent={"dropout": ["a", "b"]}, unknown={"momentum": ["a"]}))
      "2 of 3 past tasks have no 'dropout'; 'momentum' of 1 past task is not in the search space and is not used"
    """
    phrases = [f"{len(tasks)} of {len(past)} past tasks have no {name!r}" for name, tasks in past.absent.items()]
    for name, tasks in past.unknown.items():
        noun = "task" if len(tasks) == 1 else "tasks"
        phrases.append(f"{name!r} of {len(tasks)} past {noun} is not in the search space and is not used")
    features = describe_features(past.features, past.tasks.values(), past.unused_features)
    return "; ".join([*phrases, *([features] if features else [])])


@with_default_float_errors
def past_of(
    space: Space,
    tasks: Mapping[str, Iterable[Evaluated]],
    *,
    direction: str,
    metric: str | None = None,
    exclusions: Sequence[Exclusion] = (),
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    features: Mapping[str, Mapping[str, Any]] | None = None,
    feature_types: Mapping[str, FeatureType] | None = None,
) -> Past:
    """Returns past tasks from trials.

    Tasks may have hyperparameters of their own, which are dropped, and may lack hyperparameters of the search space. If
    no trial of a task has a hyperparameter, it is encoded as inactive in this task; `Surrogate.fit` warns of both.

    Trials that violate constraints rank below all others of their task, the larger the violation the lower. A study
    with a surrogate of such tasks ranks its trials in the same way. Those with an unknown constraint are left out.

    Args:
      space: the search space.
      tasks: trials by task name: `Evaluated`, or trials of an `Optimizer` or of Optuna; or the studies with these
        trials, such as `Optimizer.load` returns. Trials that are not complete are excluded, and those with NaN are
        skipped. Infinities become the worst or the best value. Costs of trials inform a study whose trials have costs.
      direction: "minimize" or "maximize"; a study that uses a surrogate of these tasks must have the same direction.
      metric: name of the values, for messages.
      exclusions: earlier exclusions.
      absent: values that earlier models had for hyperparameters that they did not set: ``{"dropout": 0.0}``. None if
        there is no such value.
      renamed: new names of hyperparameters by their old ones.
      features: what is known of a task before its first trial, by task and name: ``{"1B": {"parameters": 1e9}}``. The
        tasks may lack some; studies have their own (`Optimizer.features`). A surrogate learns how the best
        configuration moves with features that are known of at least three tasks and differ between them.
      feature_types: descriptions of features by name, `Log()`, `Linear()` or `Choice()`. By default text and booleans
        are choices, and positive numbers that differ by more than a factor of ten are on a log scale.

    Returns:
      The tasks that have at least three different configurations that fit, and values that differ; `exclusions` says
      what is missing.

    Raises:
      ConfigError: for an unknown direction, two old names of a hyperparameter, or a description of no feature.
      DataError: for a value that is not a number, and for an unknown hyperparameter or a value that it does not take in
        `absent` and `renamed`; for features of an unknown task, and a number of a feature that is text, infinite, or
        not positive on a log scale.

    Example:
      >>> from dre_jax.tuning import Float, Space
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> trials = [Evaluated({"x": x / 4}, (x - 2) ** 2) for x in range(5)]
      >>> past = past_of(space, {"a": trials, "b": trials[:2]}, direction="minimize")
      >>> list(past.tasks), [str(exclusion) for exclusion in past.exclusions]
      (['a'], ['b: a task must have at least 3 different configurations with a value, but has 2'])
    """
    one_of("direction", direction, DIRECTIONS)
    if not isinstance(tasks, Mapping):
        raise DataError(f"past tasks must map names to trials, but got {show(tasks)}")
    changes = SpaceChanges(space, absent or {}, renamed or {})
    all_features = {str(name): dict(getattr(study, "features", None) or {}) for name, study in tasks.items()}
    for name, known in check_features(features or {}, all_features).items():
        all_features[name] |= known
    read_tasks = {
        str(name): _read(changes, str(name), getattr(study, "trials", study)) for name, study in tasks.items()
    }
    absent_from = _tasks_by_name({name: task.absent for name, task in read_tasks.items()})
    encoding = with_absence(space, absent_from)
    encoded_tasks: dict[str, Task] = {}
    all_exclusions = list(exclusions)
    constrained = False
    for name, task in read_tasks.items():
        if task.is_foreign:
            rule = f"a task must have a hyperparameter of the space, {', '.join(space)}"
            all_exclusions.append(Exclusion(name, f"{rule}, but has none"))
            continue
        if task.misfits:
            all_exclusions.append(Exclusion.of_trials(name, task.misfits))
        if task.unfinished:
            all_exclusions.append(Exclusion.of_outcomes(name, task.unfinished))
        rows = encoding.encode_rows([trial.params for trial in task.trials])
        values, costs = (np.array([trial[i] for trial in task.trials], np.float64) for i in (1, 2))
        violations = np.array([violation_of(trial) for trial in task.trials])
        responses = rank_infeasible_last(values * (1.0 if direction == "maximize" else -1.0), violations)
        if reason := _unusable(rows, responses):
            all_exclusions.append(Exclusion(name, reason))
            continue
        constrained = constrained or bool(violations.any())
        encoded_tasks[name] = Task(
            name, rows.astype(np.float32), clip_responses(responses), None if np.isnan(costs).all() else costs
        )
    past_features = encode_features(all_features, feature_types or {}, encoded_tasks)
    for name, row in past_features.rows.items():
        encoded_tasks[name] = replace(encoded_tasks[name], features=row)
    return Past(
        encoding,
        encoded_tasks,
        tuple(all_exclusions),
        direction,
        metric,
        {name: names for name, of in absent_from.items() if (names := [name for name in of if name in encoded_tasks])},
        _tasks_by_name({name: task.unknown for name, task in read_tasks.items() if name in encoded_tasks}),
        constrained,
        past_features.space,
        past_features.unused,
    )


def start_design(past: Past, n: int | None, seed: int) -> tuple[Params, ...]:
    """Returns a start design of at most n configurations, see `dre_jax.methods.start_configurations.start_rows`."""
    if n == 0:
        return ()
    return tuple(past.space.decode(row, drop_absent=True) for row in start_rows(past.tasks, n, seed))


class _ReadTask(NamedTuple):
    """Trials of a past task whose values are numbers."""

    trials: list[Evaluated]
    """Trials that fit, with new names and values of the declared types."""
    misfits: list[str]
    """Reasons why other trials do not fit."""
    unfinished: list[str]
    """States of other trials, which have no final value."""
    absent: list[str]
    unknown: list[str]
    is_foreign: bool
    """Whether the task has hyperparameters, but none of the space."""


def _read(changes: SpaceChanges, name: str, trials: Iterable[Evaluated]) -> _ReadTask:
    updates: list[tuple[DataError | None, Evaluated]] = []
    names, unfinished = dict[str, None](), list[str]()
    for i, trial in enumerate(trials):
        if not hasattr(trial, "value"):
            raise DataError(f"a trial of past task {name!r} must be an Evaluated, but is {show(trial)}")
        if (outcome := outcome_of(trial)) != "complete":
            unfinished.append(outcome)
            continue
        value = objective_value(trial.value, f"the value of every trial of past task {name!r}")
        if math.isnan(value):
            continue
        cost = getattr(trial, "cost", None)
        try:
            cost = None if cost is None else checked_cost(cost, f"trial {i}: the cost of a trial")
            params = changes.update_params(trial.params)
            updates.append((None, Evaluated(params, value, cost, getattr(trial, "constraints", None))))
            names |= dict.fromkeys(trial.params)
        except DataError as error:
            updates.append((error, trial))
    configurations = [trial.params for error, trial in updates if error is None]
    absent, unknown = absent_names(changes.space, configurations), changes.unknown(names)
    is_foreign = bool(unknown) and not any(configurations) and len(configurations) == len(updates)
    task = _ReadTask([], [], unfinished, absent, unknown, is_foreign)
    limits = [dict(trial.constraints or {}) for error, trial in updates if error is None]
    measured = {name for values in limits for name, limit in values.items() if not math.isnan(limit)}
    for misfit, trial in updates:
        try:
            if misfit is not None:
                raise misfit
            if unmeasured := [name for name in measured if math.isnan((trial.constraints or {}).get(name, 0.0))]:
                raise DataError(f"a constraint of a trial must be known, but {unmeasured[0]!r} is not")
            task.trials.append(trial._replace(params=changes.space.check(trial.params, absent=absent, rules=False)))
        except DataError as error:
            task.misfits.append(str(error))
    return task


def _tasks_by_name(names: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Returns the tasks of each hyperparameter, from the hyperparameters of each task."""
    tasks: dict[str, list[str]] = {}
    for task, hyperparameters in names.items():
        for name in hyperparameters:
            tasks.setdefault(name, []).append(task)
    return tasks


def _unusable(rows: np.ndarray, responses: np.ndarray) -> str | None:
    """Returns why nothing can be learned from a task, or None."""
    n_different = len({row.tobytes() for row in rows})
    if n_different < MIN_CONFIGURATIONS:
        rule = f"a task must have at least {MIN_CONFIGURATIONS} different configurations with a value"
        return f"{rule}, but has {n_different}"
    if len(set(responses.tolist())) < 2:
        return "a task must have values that differ, but all are equal"
    return None
