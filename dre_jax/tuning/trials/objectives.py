"""Objectives of a study: names, directions, the values of its trials, and which trials are the best."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.checks import one_of
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.scalars import is_finite, to_list
from dre_jax.suggest.hypervolume import dominates
from dre_jax.tuning.trials.replicates import merge_repeats
from dre_jax.tuning.trials.trial import VALUE, State, Trial, objective_value

DIRECTIONS = ("minimize", "maximize")
_COMPLETE: tuple[State, ...] = ("complete",)
AT_ANY_BUDGET: tuple[State, ...] = ("complete", "paused")
"""The states of trials with a value at any budget; those that are complete have one at the highest budget."""


class Objective(NamedTuple):
    """What a study minimises or maximises."""

    name: str
    """The name; `VALUE` for the only objective of a study."""
    direction: str
    """"minimize" or "maximize"."""

    @property
    def sign(self) -> float:
        """The factor that turns values into responses, for which higher is better."""
        return 1.0 if self.direction == "maximize" else -1.0


Objectives = tuple[Objective, ...]
"""The objectives of a study, one or several; as a `dict`, their directions by name."""


def objectives_of(direction: str = "minimize", directions: Mapping[str, str] | None = None) -> Objectives:
    """Returns the objective of a direction, or the objectives of ``directions`` by name.

    Raises `ConfigError` if both arguments are passed, for an invalid name or direction, and for fewer than two names.

    Example:
      >>> objectives_of("maximize")
      (Objective(name='value', direction='maximize'),)
    """
    if directions is None:
        one_of("direction", direction, DIRECTIONS)
        return (Objective(VALUE, direction),)
    if direction != "minimize":
        raise ConfigError(f"a study has direction= or directions=, but got {direction!r} and {directions!r}")
    if not isinstance(directions, Mapping) or len(directions) < 2:
        rule = "directions must map the names of two or more objectives to 'minimize' or 'maximize'"
        raise ConfigError(f"{rule}, but got {directions!r}: pass direction= for one objective")
    for name, objective_direction in directions.items():
        if not isinstance(name, str):
            raise ConfigError(f"the name of an objective must be a string, but got {name!r}")
        one_of(f"direction of {name!r}", objective_direction, DIRECTIONS)
    return tuple(Objective(name, objective_direction) for name, objective_direction in directions.items())


def objectives_by_name(directions: Mapping[str, str | None]) -> Objectives:
    """Returns objectives of directions by name, `VALUE` for a single one; None minimises. Raises as `objectives_of`."""
    by_name = {name: direction or "minimize" for name, direction in directions.items()}
    return objectives_of(by_name[VALUE]) if [*by_name] == [VALUE] else objectives_of(directions=by_name)


def direction_arguments(objectives: Objectives) -> dict[str, Any]:
    """Returns the arguments of `objectives_of`, and of `dre_jax.tuning.Optimizer`, for objectives."""
    return {"directions": dict(objectives)} if len(objectives) > 1 else {"direction": objectives[0].direction}


def value_or_mapping(by_objective: Mapping[str, Any]) -> Any:
    """Returns the value of a single objective, or the mapping of several, as users and files have them.

    Example:
      >>> value_or_mapping({"value": 3.0}), value_or_mapping({"error": 0.1, "latency": 12.0})
      (3.0, {'error': 0.1, 'latency': 12.0})
    """
    return dict(by_objective) if len(by_objective) > 1 else by_objective[VALUE]


def require_objectives(study: str, objectives: Objectives, expected: Mapping[str, str | None]) -> None:
    """Raises `DataError` if a study has other objectives than expected, or another direction where one is."""
    directions = dict(objectives)
    if directions.keys() != expected.keys():
        study_names, expected_names = (_names(mapping) for mapping in (directions, expected))
        raise DataError(f"{study} must be a study of {expected_names}, but is one of {study_names}")
    for name, direction in expected.items():
        if direction not in (None, directions[name]):
            of = f" of {name}" if len(objectives) > 1 else ""
            rule = f"{study} must be a study of the direction{of} given, {direction}"
            raise DataError(f"{rule}, but its own is {directions[name]}")


def _names(directions: Mapping[str, Any]) -> str:
    return ", ".join(directions) if len(directions) > 1 else "one metric"


def find_objective(objectives: Objectives, name: str | None) -> Objective:
    """Returns the objective of a name; None stands for the only one.

    Raises `ConfigError` for another name, and for None if there are several.
    """
    names: list[str | None] = [objective.name for objective in objectives] if len(objectives) > 1 else [None]
    if name not in names:
        rule = f"the objectives of this study are {', '.join(map(repr, names))}"
        raise ConfigError(f"{rule}, but got objective={name!r}")
    return objectives[names.index(name)]


def objective_values(values: Any, objectives: Objectives) -> dict[str, float]:
    """Returns the values of a trial by objective, as floats, from a mapping or a sequence in the order of objectives.

    Raises `DataError` for other names, more or fewer values, or no numbers.

    Example:
      >>> objective_values((0.1, 12), objectives_of(directions={"error": "minimize", "latency": "minimize"}))
      {'error': 0.1, 'latency': 12.0}
    """
    if len(objectives) == 1:
        return {objectives[0].name: objective_value(values)}
    by_name = _by_objective(values, objectives)
    if by_name is None:
        names = ", ".join(repr(objective.name) for objective in objectives)
        rule = f"the values of a trial must map the objectives {names} to numbers, or be as many in this order"
        raise DataError(f"{rule}, but got {values!r}")
    return {
        objective.name: objective_value(by_name[objective.name], f"the value of {objective.name!r}")
        for objective in objectives
    }


def _by_objective(values: Any, objectives: Objectives) -> Mapping[str, Any] | None:
    """Returns a mapping of the objectives to values, also from a sequence in their order; None for anything else."""
    values, names = to_list(values), [objective.name for objective in objectives]
    if isinstance(values, (list, tuple)) and len(values) == len(names):
        return dict(zip(names, values, strict=True))
    return values if isinstance(values, Mapping) and values.keys() == set(names) else None


def reference_point(point: Any, objectives: Objectives) -> npt.NDArray[np.float64]:
    """Returns a reference point f64[M] of the hypervolume as responses, higher is better.

    Raises `ConfigError` unless the point has a finite number of each of several objectives.
    """
    if len(objectives) < 2:
        raise ConfigError(f"a reference point needs a study of several objectives, but got {point!r}")
    by_name = _by_objective(point, objectives)
    if by_name is None or not all(map(is_finite, by_name.values())):
        names = ", ".join(repr(objective.name) for objective in objectives)
        raise ConfigError(f"EngineConfig.reference_point must be finite numbers of {names}, but is {point!r}")
    return np.array([objective.sign * float(by_name[objective.name]) for objective in objectives])


def responses_of(trial: Trial, objectives: Objectives) -> tuple[float, ...]:
    """Returns the values of a complete trial by objective, higher is better."""
    values = trial._values or dict.fromkeys((objective.name for objective in objectives), trial.value)
    return tuple(objective.sign * (values.get(objective.name) or 0.0) for objective in objectives)


def values_of(trials: Sequence[Trial], objectives: Objectives) -> npt.NDArray[np.float64]:
    """Returns the values f64[n, M] of complete trials in M objectives, higher is better."""
    values = np.array([responses_of(trial, objectives) for trial in trials], np.float64)
    return values.reshape(len(trials), len(objectives))


def front_of(
    trials: Sequence[Trial], objectives: Objectives, states: Collection[State] = _COMPLETE
) -> tuple[Trial, ...]:
    """Returns the feasible trials of some states that no other one dominates, in the order of their numbers."""
    feasible = feasible_trials(trials, states)
    if not feasible:
        return ()
    is_dominated = dominates(np.array([responses_of(trial, objectives) for trial in feasible])).any(axis=0)
    return tuple(feasible[i] for i in np.flatnonzero(~is_dominated))


def best_trials(trials: Sequence[Trial], objectives: Objectives, states: Collection[State] = _COMPLETE) -> list[Trial]:
    """Returns the best trial, the first of equal ones; of several objectives the front, by the first objective.

    Trials of one configuration count as one, with the mean of their values; see `merge_repeats`. Only those of some
    states count, by default complete ones.
    """
    if len(objectives) == 1:  # without comparing all pairs
        feasible = feasible_trials(trials, states)
        return sorted(feasible, key=lambda trial: responses_of(trial, objectives), reverse=True)[:1]
    return sorted(front_of(trials, objectives, states), key=lambda trial: trial.values[objectives[0].name])


def feasible_trials(trials: Sequence[Trial], states: Collection[State] = _COMPLETE) -> list[Trial]:
    """Returns the trials of some states that are in the space and feasible, each with all measurements."""
    ended = merge_repeats(trial for trial in trials if trial.state in states and trial.in_space)
    return [trial for trial in ended if trial.is_feasible]
