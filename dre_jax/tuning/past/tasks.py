"""Past evaluations of a search space: the tasks that a surrogate learns from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.spaces import SearchSpace, Task
from dre_jax.errors import DataError
from dre_jax.tuning.response_clipping import clip_responses
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.trial import DIRECTIONS, objective_value

MIN_CONFIGURATIONS = 3
"""Minimum number of different configurations with a value of a past task."""


class Evaluated(NamedTuple):
    """A configuration and its value.

    Example:
      >>> Evaluated({"x": 0.5}, 2.0).value
      2.0
    """

    params: Mapping[str, Any]
    """Values by name."""
    value: float
    """In the task's own direction; may be infinite."""


class Exclusion(NamedTuple):
    """Why a task, or some of its trials, cannot be learned from."""

    name: str
    """Name of the task."""
    reason: str
    """The rule, and the value that violates it."""

    def __str__(self) -> str:
        """A line about it."""
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Past:
    """Tasks of one search space, encoded.

    Example:
      >>> from dre_jax.tuning import Float
      >>> len(Past(Space({"x": Float(0.0, 1.0)})))
      0
    """

    space: Space
    tasks: dict[str, Task] = field(default_factory=dict)
    """By name; columns as the space encodes them, responses maximised."""
    exclusions: tuple[Exclusion, ...] = ()
    """Tasks and trials that do not fit, with the reason."""
    direction: str | None = None
    """Direction of the tasks' values before they were turned into responses, "minimize" or "maximize"; None if the
    tasks have both directions, or if only their responses are known."""
    metric: str | None = None
    """Name of the values, if they have one."""

    def __post_init__(self) -> None:
        if self.direction is not None:
            one_of("direction", self.direction, DIRECTIONS)

    def search_space(self, name: str = "past") -> SearchSpace:
        """The tasks as training tasks, for everything that takes a search space of HPO-B's form."""
        return SearchSpace(name, train=dict(self.tasks), columns=self.space.columns)

    def __len__(self) -> int:
        return len(self.tasks)


def past_of(
    space: Space,
    tasks: Mapping[str, Iterable[Evaluated]],
    *,
    direction: str,
    metric: str | None = None,
    exclusions: Sequence[Exclusion] = (),
) -> Past:
    """Returns past tasks from trials.

    Args:
      space: the search space.
      tasks: trials by task name. Trials with NaN are skipped; infinities become the worst or the best value.
      direction: "minimize" or "maximize"; a study that uses a surrogate of these tasks must have the same direction.
      metric: name of the values, for messages.
      exclusions: earlier exclusions.

    Returns:
      The tasks that have at least three different configurations that fit, and values that differ; `exclusions` says
      what is missing.

    Raises:
      ConfigError: for an unknown direction.
      DataError: for a value that is no number.

    Example:
      >>> from dre_jax.tuning import Float, Space
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> trials = [Evaluated({"x": x / 4}, (x - 2) ** 2) for x in range(5)]
      >>> past = past_of(space, {"a": trials, "b": trials[:2]}, direction="minimize")
      >>> list(past.tasks), [str(one) for one in past.exclusions]
      (['a'], ['b: a task must have at least 3 different configurations with a value, but has 2'])
    """
    one_of("direction", direction, DIRECTIONS)
    encoded_tasks: dict[str, Task] = {}
    all_exclusions = list(exclusions)
    for name, trials in tasks.items():
        rows, values, misfits = [], list[float](), list[str]()
        for trial in trials:
            value = objective_value(trial.value, f"the value of every trial of past task {name!r}")
            if math.isnan(value):
                continue
            try:
                rows.append(trial.params if isinstance(trial.params, np.ndarray) else space.encode(trial.params))
            except DataError as error:
                misfits.append(str(error))
                continue
            values.append(value if direction == "maximize" else -value)
        if misfits:
            more = f" ({len(misfits)} trials)" if len(misfits) > 1 else ""
            all_exclusions.append(Exclusion(name, f"{misfits[0]}{more}"))
        reason = _unusable(rows, values)
        if reason:
            all_exclusions.append(Exclusion(name, reason))
            continue
        encoded_tasks[name] = Task(name, np.asarray(rows, np.float32), clip_responses(np.asarray(values, np.float64)))
    return Past(space, encoded_tasks, tuple(all_exclusions), direction, metric)


def _unusable(rows: Sequence[Any], values: Sequence[float]) -> str | None:
    """Returns why nothing can be learned from a task, or None."""
    n_different = len({row.tobytes() for row in rows})
    if n_different < MIN_CONFIGURATIONS:
        rule = f"a task must have at least {MIN_CONFIGURATIONS} different configurations with a value"
        return f"{rule}, but has {n_different}"
    if len(set(values)) < 2:
        return "a task must have values that differ, but all are equal"
    return None
