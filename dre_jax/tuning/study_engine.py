"""The engine of a study, from its arguments: one objective or several, with surrogates or without."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.tuning.engine import Engine
from dre_jax.tuning.engine_config import EngineConfig
from dre_jax.tuning.objectives.engine import ObjectivesEngine
from dre_jax.tuning.objectives.objectives import check_directions, surrogates_by_objective
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.surrogate import Surrogate

Surrogates = Surrogate | Mapping[str, Surrogate | None] | None


def make_engine(
    space: Space | Mapping[str, Any] | None,
    surrogate: Surrogates,
    direction: str,
    directions: Mapping[str, str] | None,
    seed: int,
    config: EngineConfig | None,
) -> tuple[dict[str | None, str], Engine]:
    """Returns the directions of a study by objective, None for a single one, and the engine.

    Raises:
      ConfigError, DataError: as `dre_jax.tuning.Optimizer`.
    """
    for one in surrogate.values() if isinstance(surrogate, Mapping) else (surrogate,):
        if not (one is None or isinstance(one, Surrogate)):
            rule = "a surrogate must be a Surrogate, as Surrogate.load and Surrogate.pretrained return"
            raise ConfigError(f"{rule}, but got {reprlib.repr(one)}")
    if directions is None:
        if isinstance(surrogate, Mapping):
            raise ConfigError("surrogates by objective need directions= of the objectives, but got none")
        searched = space_of(space, surrogate)
        if surrogate is not None:
            surrogate.require_direction(direction)
        return {None: direction}, Engine(searched, surrogate, seed=seed, config=config)
    if direction != "minimize":
        raise ConfigError(f"a study has direction= or directions=, but got {direction!r} and {directions!r}")
    named = check_directions(directions)
    surrogates = surrogates_by_objective(surrogate, named)
    searched = space_of(space, next((one for one in surrogates.values() if one is not None), None))
    return dict(named.items()), ObjectivesEngine(searched, surrogates, seed=seed, config=config)


def space_of(space: Space | Mapping[str, Any] | None, surrogate: Surrogate | None) -> Space:
    """Returns the space to search: the one given, or the surrogate's. Raises `ConfigError` without both."""
    if space is None and surrogate is not None:
        return surrogate.space
    if isinstance(space, Space):
        return space
    if not isinstance(space, Mapping):
        raise ConfigError(
            f"a search space must be a Space, a mapping, or a surrogate's by surrogate=, but got {reprlib.repr(space)}"
        )
    return Space(space)
