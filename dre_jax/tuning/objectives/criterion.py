"""The criterion of a search, from its objectives and its surrogates."""

import reprlib
from collections.abc import Mapping
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.search.method import Method
from dre_jax.space.space import Space
from dre_jax.tuning.objectives.several import SeveralObjectives
from dre_jax.tuning.objectives.single import SingleObjective
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import Objectives, reference_point

Surrogates = Surrogate | Mapping[str, Surrogate | None] | None
"""The surrogates of a study: that of its only objective, or a mapping by objective."""
Criterion = SingleObjective | SeveralObjectives


def surrogates_by_objective(surrogate: Any, objectives: Objectives) -> dict[str, Surrogate | None]:
    """Returns a surrogate, or None, for each objective, from a mapping of some, or the surrogate of the only one.

    Raises `ConfigError` for several objectives without a mapping, a mapping with other names, or a value that is not a
    surrogate. Raises `DataError` if a surrogate's direction is not that of its objective.
    """
    directions, is_single = dict(objectives), len(objectives) == 1
    if surrogate is None or (is_single and not isinstance(surrogate, Mapping)):
        surrogate = dict.fromkeys(directions, surrogate)
    for fitted in surrogate.values() if isinstance(surrogate, Mapping) else (surrogate,):
        if not (fitted is None or isinstance(fitted, Surrogate)):
            rule = "a surrogate must be a Surrogate, as Surrogate.load and Surrogate.pretrained return"
            raise ConfigError(f"{rule}, but got {reprlib.repr(fitted)}")
    if not isinstance(surrogate, Mapping) or not surrogate.keys() <= directions.keys():
        rule = f"a study of the objectives {', '.join(map(repr, directions))} needs a mapping of them to surrogates"
        rule = "a study of one objective has one surrogate" if is_single else rule
        raise ConfigError(f"{rule}, but got surrogate={reprlib.repr(surrogate)}")
    by_name: dict[str, Surrogate | None] = {name: surrogate.get(name) for name in directions}
    for name, fitted in by_name.items():
        if fitted is not None:
            fitted.require_direction(directions[name])
    return by_name


def search_space(space: Any, surrogates: Mapping[str, Surrogate | None]) -> Space:
    """Returns the space of a search from a space or a mapping; None takes that of a surrogate.

    Raises `ConfigError` for anything else.
    """
    if space is None:
        space = next((fitted.space for fitted in surrogates.values() if fitted is not None), None)
    if not isinstance(space, Mapping):
        rule = "a search space must be a Space, a mapping, or a surrogate's by surrogate="
        raise ConfigError(f"{rule}, but got {reprlib.repr(space)}")
    return space if isinstance(space, Space) else Space(space)


def criterion_of(
    objectives: Objectives,
    surrogates: Mapping[str, Surrogate | None],
    alone: str | Method,
    pending_strategy: str,
    reference: Any,
) -> Criterion:
    """Returns the criterion of one objective or several, which name the surrogates.

    Args:
      objectives: the objectives of the search.
      surrogates: the surrogates by objective.
      alone: the method of objectives without a surrogate, or its name.
      pending_strategy: stand-in for running trials, of several objectives.
      reference: worst values that count, of several objectives; None for the worst so far.

    Raises:
      ConfigError: for a reference of another number of objectives; and as `SeveralObjectives`.
    """
    parts = {
        objective.name: SingleObjective(surrogates[objective.name], objective.direction, alone)
        for objective in objectives
    }
    point = None if reference is None else reference_point(reference, objectives)
    if len(objectives) == 1:
        return parts[objectives[0].name]
    return SeveralObjectives(parts, pending_strategy, point)
