"""Objectives of a study by name, "" for a single one: directions, values, surrogates, the best trials."""

import reprlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.checks import one_of
from dre_jax.errors import ConfigError, DataError
from dre_jax.suggest.hypervolume import dominates
from dre_jax.tuning.space.scalars import is_finite, to_list
from dre_jax.tuning.study.trial import DIRECTIONS, Trial, objective_value
from dre_jax.tuning.surrogates.surrogate import Surrogate

ANY_DIRECTION: Mapping[str, str | None] = MappingProxyType({"": None})
"""One objective, in whatever direction the study has."""


def check_directions(directions: Any) -> dict[str, str]:
    """Returns the directions of one objective or several. Raises `ConfigError` for a name or a direction that is none.

    Example:
      >>> check_directions({"error": "minimize", "speed": "maximize"})
      {'error': 'minimize', 'speed': 'maximize'}
    """
    is_single = isinstance(directions, Mapping) and list(directions) == [""]
    if not is_single and (not isinstance(directions, Mapping) or len(directions) < 2):
        rule = "directions must map the names of two or more objectives to 'minimize' or 'maximize'"
        raise ConfigError(f"{rule}, but got {directions!r}: pass direction= for one objective")
    for name, direction in directions.items():
        if not isinstance(name, str):
            raise ConfigError(f"the name of an objective must be a string, but got {name!r}")
        one_of(f"direction of {name!r}" if name else "direction", direction, DIRECTIONS)
    return dict(directions)


def require_directions(study: str, directions: Mapping[str, str], expected: Mapping[str, str | None]) -> None:
    """Raises `DataError` if a study has other objectives than expected, or another direction where one is."""
    if set(directions) != set(expected):
        own, others = (", ".join(filter(None, names)) or "one metric" for names in (directions, expected))
        raise DataError(f"{study} must be a study of {others}, but is one of {own}")
    for name, direction in expected.items():
        if direction not in (None, directions[name]):
            of = f" of {name}" if name else ""
            rule = f"{study} must be a study of the direction{of} given, {direction}"
            raise DataError(f"{rule}, but its own is {directions[name]}")


def objective_values(values: Any, directions: Mapping[str, str]) -> dict[str, float]:
    """Returns the values of a trial by objective, as floats, from a mapping or a sequence in the order of directions.

    Raises `DataError` for other names, more or fewer values, or no numbers.

    Example:
      >>> objective_values((0.1, 12), {"error": "minimize", "latency": "minimize"})
      {'error': 0.1, 'latency': 12.0}
    """
    if list(directions) == [""]:
        return {"": objective_value(values)}
    by_name = by_objective(values, directions)
    if by_name is None:
        names = ", ".join(map(repr, directions))
        rule = f"the values of a trial must map the objectives {names} to numbers, or be as many in this order"
        raise DataError(f"{rule}, but got {values!r}")
    return {name: objective_value(by_name[name], f"the value of {name!r}") for name in directions}


def by_objective(values: Any, directions: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Returns a mapping of the objectives to values, also from a sequence in their order; None for anything else."""
    values = to_list(values)
    if isinstance(values, (list, tuple)) and len(values) == len(directions):
        return dict(zip(directions, values, strict=True))
    return values if isinstance(values, Mapping) and values.keys() == directions.keys() else None


def reference_point(point: Any, directions: Mapping[str, str]) -> npt.NDArray[np.float64]:
    """Returns a reference point f64[M] of the hypervolume as responses, higher is better.

    Raises `ConfigError` unless the point has a finite number of each of several objectives.
    """
    if len(directions) < 2:
        raise ConfigError(f"a reference point needs a study of several objectives, but got {point!r}")
    by_name = by_objective(point, directions)
    if by_name is None or not all(map(is_finite, by_name.values())):
        names = ", ".join(map(repr, directions))
        raise ConfigError(f"EngineConfig.reference_point must be finite numbers of {names}, but is {point!r}")
    signs = (1.0 if direction == "maximize" else -1.0 for direction in directions.values())
    return np.array([sign * float(by_name[name]) for name, sign in zip(directions, signs, strict=True)])


def surrogates_by_objective(surrogate: Any, directions: Mapping[str, str]) -> dict[str, Surrogate | None]:
    """Returns a surrogate, or None, for each objective, from a mapping of some, or the surrogate of the only one.

    Raises `ConfigError` if there is no mapping for several objectives, or one with other names, and `DataError` if a
    surrogate's direction is not that of its objective.
    """
    is_single = len(directions) == 1
    if surrogate is None or (is_single and not isinstance(surrogate, Mapping)):
        surrogate = dict.fromkeys(directions, surrogate)
    if not isinstance(surrogate, Mapping) or not surrogate.keys() <= directions.keys():
        rule = f"a study of the objectives {', '.join(map(repr, directions))} needs a mapping of them to surrogates"
        rule = "a study of one objective has one surrogate" if is_single else rule
        raise ConfigError(f"{rule}, but got surrogate={reprlib.repr(surrogate)}")
    by_name: dict[str, Surrogate | None] = {name: surrogate.get(name) for name in directions}
    for name, fitted in by_name.items():
        if fitted is not None:
            fitted.require_direction(directions[name])
    return by_name


def responses_of(trial: Trial, directions: Mapping[str, str]) -> tuple[float, ...]:
    """Returns the values of a complete trial by objective, higher is better."""
    values = [trial._values.get(name, trial.value) for name in directions]
    signs = [1.0 if direction == "maximize" else -1.0 for direction in directions.values()]
    return tuple(sign * (value or 0.0) for sign, value in zip(signs, values, strict=True))


def values_of(trials: Sequence[Trial], directions: Mapping[str, str]) -> npt.NDArray[np.float64]:
    """Returns the values f64[n, M] of complete trials in M objectives, higher is better."""
    return np.array([responses_of(trial, directions) for trial in trials], np.float64)


def front_of(trials: Sequence[Trial], directions: Mapping[str, str]) -> tuple[Trial, ...]:
    """Returns the complete, feasible trials that no other one dominates, in the order of their numbers."""
    feasible = feasible_trials(trials)
    if not feasible:
        return ()
    is_dominated = dominates(np.array([responses_of(trial, directions) for trial in feasible])).any(axis=0)
    return tuple(feasible[i] for i in np.flatnonzero(~is_dominated))


def checked_objective(directions: Mapping[str, str], objective: str | None) -> str:
    """Returns the name of an objective as ``directions`` have it, "" for the only one; None stands for that.

    Raises `ConfigError` for another name, and for None if there are several.
    """
    names = [name or None for name in directions]
    if objective not in names:
        rule = f"the objectives of this study are {', '.join(map(repr, names))}"
        raise ConfigError(f"{rule}, but got objective={objective!r}")
    return objective or ""


def best_trials(trials: Sequence[Trial], directions: Mapping[str, str]) -> list[Trial]:
    """Returns the best trial, the first of equal ones; of several objectives the front, by the first objective."""
    if len(directions) == 1:  # without comparing all pairs
        return sorted(feasible_trials(trials), key=lambda trial: responses_of(trial, directions), reverse=True)[:1]
    name, *_ = directions
    return sorted(front_of(trials, directions), key=lambda trial: trial.values[name])


def feasible_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the complete, feasible trials."""
    return [trial for trial in trials if trial.state == "complete" and trial.is_feasible]
