"""What a rival gets to know of a task, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Evaluated, Space

Studies = Mapping[str, Sequence[Evaluated]]
"""Trials of past studies, by name. Values are maximised."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A search space with what is known before the first trial; one object for all tasks that share a past."""

    space: Space
    past: Studies
    """Of other tasks; empty for none."""


@dataclass(frozen=True, eq=False)
class Table:
    """All configurations that can be evaluated."""

    space: Space
    rows: Sequence[Params]
    values: np.ndarray
    """f64[n], maximised."""

    @cached_property
    def columns(self) -> np.ndarray:
        """The rows as points of the unit cube, f64[n, D]; choices are one-hot."""
        return self.space.encode_rows(self.rows)

    def nearest(self, params: Params, left: np.ndarray) -> int:
        """Returns the number of the row nearest to a configuration, of the rows that are left, bool[n]."""
        distances = np.linalg.norm(self.columns - self.space.encode(params), axis=1)
        return int(np.where(left, distances, np.inf).argmin())


@dataclass(frozen=True, eq=False)
class Task:
    """One task: a live function, or a table."""

    name: str
    problem: Problem
    design: Sequence[Params]
    """The configurations of the first trials, the same for all rivals."""
    evaluate: Callable[[Sequence[Params]], np.ndarray] | None = None
    """Values of configurations, f64[n], maximised; None for a table."""
    table: Table | None = None


class Rival(Protocol):
    """A tuner in the midst of a task. It is made from a problem, the rows of a table or None, and a seed."""

    def ask(self) -> Params:
        """Returns the configuration to evaluate next."""
        ...

    def tell(self, params: Params, value: float) -> None:
        """Takes a trial: of the design, or of the configuration asked for; of a table, of the row nearest to it."""
        ...


def best_of_past(studies: Studies) -> list[Params]:
    """Returns the best configuration of each study, without repetitions."""
    best = (max(trials, key=lambda trial: trial.value) for trials in studies.values())
    return list({tuple(trial.params.items()): dict(trial.params) for trial in best}.values())


def complete(space: Space, params: Mapping[str, Any]) -> Params:
    """Returns a configuration with a value of each hyperparameter, for tuners that know no conditions."""
    lowest = {
        name: parameter.choices[0] if isinstance(parameter, Categorical) else parameter.low  # type: ignore[union-attr]
        for name, parameter in space.items()
    }
    return {**lowest, **params}


def coordinates(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns choices, and numbers on the scale that they are searched on, from 0 to 1; those inactive are 0.5."""
    whole, point = complete(space, params), space.point(params)
    return {
        name: whole[name] if isinstance(space[name], Categorical) else float(coordinate)
        for name, coordinate in zip(space.sequence, point, strict=True)
    }


def params_at(space: Space, coordinates: Mapping[str, Any]) -> Params:
    """Returns the configuration with the coordinates of `coordinates`."""
    point = [
        space.coordinate(name, coordinates[name]) if isinstance(space[name], Categorical) else coordinates[name]
        for name in space.sequence
    ]
    return space.params(np.array(point))
