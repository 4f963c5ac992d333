"""The engine of a study of any objectives."""

import reprlib
from collections.abc import Mapping
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.engine_config import EngineConfig, checked_config
from dre_jax.tuning.objectives.objectives import check_directions, reference_point, surrogates_by_objective
from dre_jax.tuning.objectives.several import SeveralObjectives
from dre_jax.tuning.objectives.single import SingleObjective
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.surrogates.surrogate import Surrogate

Surrogates = Surrogate | Mapping[str, Surrogate | None] | None


def make_engine(
    space: Space | Mapping[str, Any] | None,
    surrogate: Surrogates,
    direction: str,
    directions: Mapping[str, str] | None,
    seed: int,
    config: EngineConfig | None,
) -> Engine:
    """Returns the engine of a study. Raises `ConfigError` and `DataError` as `dre_jax.tuning.Optimizer`."""
    for fitted in surrogate.values() if isinstance(surrogate, Mapping) else (surrogate,):
        if not (fitted is None or isinstance(fitted, Surrogate)):
            rule = "a surrogate must be a Surrogate, as Surrogate.load and Surrogate.pretrained return"
            raise ConfigError(f"{rule}, but got {reprlib.repr(fitted)}")
    if directions is None:
        if isinstance(surrogate, Mapping):
            raise ConfigError("surrogates by objective need directions= of the objectives, but got none")
        directions, surrogate = {"": direction}, {"": surrogate}
    elif direction != "minimize":
        raise ConfigError(f"a study has direction= or directions=, but got {direction!r} and {directions!r}")
    directions = check_directions(directions)
    surrogates = surrogates_by_objective(surrogate, directions)
    if space is None:
        space = next((fitted.space for fitted in surrogates.values() if fitted is not None), None)
    if not isinstance(space, Mapping):
        rule = "a search space must be a Space, a mapping, or a surrogate's by surrogate="
        raise ConfigError(f"{rule}, but got {reprlib.repr(space)}")
    search_space = space if isinstance(space, Space) else Space(space)
    return engine_of(search_space, surrogates, directions, seed=seed, config=config)


def engine_of(
    space: Space,
    surrogates: Mapping[str, Surrogate | None],
    directions: Mapping[str, str],
    *,
    seed: int = 0,
    config: EngineConfig | None = None,
) -> Engine:
    """Returns the engine of one objective or several, which name surrogates and directions; see `Engine`."""
    config = checked_config(config)
    parts = {name: SingleObjective(surrogates[name], each, config.method) for name, each in directions.items()}
    if len(parts) > 1:
        return Engine(space, SeveralObjectives(parts, config), seed=seed, config=config)
    if config.reference_point is not None:
        reference_point(config.reference_point, directions)  # raises
    return Engine(space, *parts.values(), seed=seed, config=config)
