"""Past evaluations of a search space: the tasks that a surrogate learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.spaces import SearchSpace, Task
from dre_jax.errors import DataError
from dre_jax.tuning.response_clipping import clip_responses
from dre_jax.tuning.space.space import Space

DIRECTIONS = ("minimize", "maximize")
FEWEST = 3
"""Trials with a value that a task must have to be learned from."""


class PastTrial(NamedTuple):
    """A configuration and its value."""

    params: Mapping[str, Any]
    """Values by name."""
    value: float
    """In the task's own direction; may be infinite."""


class Exclusion(NamedTuple):
    """A task, or some of its trials, that cannot be learned from."""

    name: str
    """Of the task."""
    why: str
    """The rule, and what was given."""

    def __str__(self) -> str:
        """A line about it."""
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, eq=False)
class PastTasks:
    """Tasks of one search space, encoded."""

    space: Space
    tasks: dict[str, Task] = field(default_factory=dict)
    """By name; columns as the space encodes them, responses maximised."""
    exclusions: tuple[Exclusion, ...] = ()
    """Tasks and trials that do not fit, and why."""

    def search_space(self, name: str = "past") -> SearchSpace:
        """The tasks as training tasks, for everything that takes a search space of HPO-B's form."""
        return SearchSpace(name, train=dict(self.tasks), columns=self.space.columns)

    def __len__(self) -> int:
        return len(self.tasks)


def collect_past_tasks(
    space: Space,
    tasks: Mapping[str, Iterable[PastTrial]],
    *,
    direction: str = "maximize",
    exclusions: Sequence[Exclusion] = (),
) -> PastTasks:
    """Past evaluations from plain values.

    Args:
      space: what they are configurations of.
      tasks: evaluations by the task's name. NaN is left out; infinities become the worst or the best.
      direction: whether values are minimised or maximised.
      exclusions: what was left out already.

    Returns:
      The tasks that have at least three different configurations that fit, and values that differ; `exclusions` says
      what is missing.

    Raises:
      ConfigError: for an unknown direction.

    Example:
      >>> from dre_jax.tuning import Float, Space
      >>> space = Space({"x": Float(0.0, 1.0)})
      >>> trials = [PastTrial({"x": x / 4}, (x - 2) ** 2) for x in range(5)]
      >>> past = collect_past_tasks(space, {"a": trials, "b": trials[:2]}, direction="minimize")
      >>> list(past.tasks), [str(one) for one in past.exclusions]
      (['a'], ['b: a task must have at least 3 trials with a value that fit, but has 2'])
    """
    one_of("direction", direction, DIRECTIONS)
    found: dict[str, Task] = {}
    missing = list(exclusions)
    for name, trials in tasks.items():
        rows, values, misfits = [], list[float](), list[str]()
        for trial in trials:
            if np.isnan(trial.value):
                continue
            try:
                rows.append(space.encode(trial.params))
            except DataError as error:
                misfits.append(str(error))
                continue
            values.append(trial.value if direction == "maximize" else -trial.value)
        if misfits:
            more = f" ({len(misfits)} trials)" if len(misfits) > 1 else ""
            missing.append(Exclusion(name, f"{misfits[0]}{more}"))
        why = _unusable(rows, values)
        if why:
            missing.append(Exclusion(name, why))
            continue
        found[name] = Task(name, np.asarray(rows, np.float32), clip_responses(np.asarray(values, np.float64)))
    return PastTasks(space, found, tuple(missing))


def _unusable(rows: Sequence[Any], values: Sequence[float]) -> str | None:
    """Why nothing can be learned from a task, or None."""
    if len(rows) < FEWEST:
        return f"a task must have at least {FEWEST} trials with a value that fit, but has {len(rows)}"
    if len(set(values)) < 2:
        return "a task must have values that differ, but all are equal"
    return None
