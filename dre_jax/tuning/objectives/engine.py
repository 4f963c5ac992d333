"""Suggestions for a study of several objectives, and the engine of any study."""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from dre_jax.data.tasks import tie_levels
from dre_jax.errors import ConfigError
from dre_jax.search.method import Method, capabilities_of
from dre_jax.suggest.candidates import default_candidates
from dre_jax.tuning.engine import Dtype, Engine
from dre_jax.tuning.engine_config import EngineConfig, default_method
from dre_jax.tuning.infeasible_trials import rank_like_past
from dre_jax.tuning.initial_design import N_START
from dre_jax.tuning.objectives.front import boxes_above, order_by_front, unit_reference, unit_values
from dre_jax.tuning.objectives.method import HypervolumeMethod, ObjectiveParams
from dre_jax.tuning.objectives.objectives import check_directions, reference_point, surrogates_by_objective
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.surrogate import Surrogate
from dre_jax.tuning.trial import Trial

Surrogates = Surrogate | Mapping[str, Surrogate | None] | None
_MAX_START = 10
_PARENTS = 12  # points of the front that candidates are drawn around


class ObjectivesEngine(Engine):
    """Suggestions by the expected hypervolume improvement, with one surrogate, or none, per objective."""

    def __init__(
        self,
        space: Space,
        surrogates: Mapping[str, Surrogate | None],
        directions: Mapping[str, str],
        *,
        seed: int = 0,
        config: EngineConfig | None = None,
    ) -> None:
        """Creates an engine.

        Args:
          space: the search space.
          surrogates: knowledge of past tasks, by objective.
          directions: of the values, by objective.
          seed: seed of all suggestions.
          config: settings.

        Raises:
          DataError: for a surrogate of another space.
          ConfigError: for surrogates of different spaces, a method without the capability ``predicts_components``, a
            pending strategy that a method does not support, or a reference point of other objectives.
        """
        strategy = (config or EngineConfig()).pending_strategy
        method = HypervolumeMethod(
            members=tuple(_method_of(name, one) for name, one in surrogates.items()), pending_strategy=strategy
        )
        self._method = method
        super().__init__(space, _combine(surrogates, method), seed=seed, config=config)
        self.surrogates, self.directions = dict(surrogates), dict(directions)
        point = self.config.reference_point
        self._reference = None if point is None else reference_point(point, directions)

    @property
    def n_start(self) -> int:
        """Number of trials that precede those of the method, without a surrogate."""
        # With fewer in many dimensions, the next trials are in corners of the space, far from the front.
        return min(max(2 * len(self.space) - 2, N_START), _MAX_START)

    def require_standard_errors(self) -> None:
        """Raises `ConfigError`."""
        raise ConfigError("standard errors need a study of one objective: tell the values without stderr")

    def require_improvement(self) -> None:
        """Raises `ConfigError`."""
        raise ConfigError("an expected gain needs a study of one objective")

    def _responses(self, observations: Sequence[Trial]) -> np.ndarray:
        """Returns the places f64[n] of the trials in the front."""
        return order_by_front(unit_values(self._values(observations)))

    def _can_value(self, observations: Sequence[Trial]) -> bool:
        return bool(observations)

    def _params_for(
        self, observations: Sequence[Trial], responses: np.ndarray, rows: np.ndarray, capacity: int, dtype: Dtype
    ) -> ObjectiveParams:
        values = self._values(observations)
        scaled_values = unit_values(values)
        feasible = np.array([one.is_feasible for one in observations])
        reference = None if self._reference is None else unit_reference(values, self._reference)
        empty = (0, capacity - len(rows))
        arrays = (
            np.stack([np.pad(column, empty) for column in self._ranked_like_past(observations, scaled_values)[rows].T]),
            np.stack([np.pad(tie_levels(a), empty) for a in self._ranked_like_past(observations, values)[rows].T]),
            np.arange(capacity) < len(rows),
            boxes_above(scaled_values, responses, feasible, capacity, reference),
        )
        arrays = jax.tree.map(lambda a: a.astype(dtype) if a.dtype == np.float64 else a, arrays)
        member_params = self._params or (None,) * len(self.surrogates)
        return ObjectiveParams(member_params, *jax.device_put(arrays))

    def _ranked_like_past(self, observations: Sequence[Trial], values: np.ndarray) -> np.ndarray:
        """Returns values f64[n, M], of which those of infeasible trials are ranked like the past of each objective."""
        columns = zip(self.surrogates.values(), values.T, strict=True)
        return np.stack([rank_like_past(one, observations, column) for one, column in columns], axis=1)

    @cached_property
    def _candidates(self) -> Any:
        strategy = "none" if self.config.pending_strategy == "none" else "mean"  # the method imputes by objective
        return replace(default_candidates(self._method, self._layout, strategy), parents=_PARENTS)


def _method_of(objective: str, surrogate: Surrogate | None) -> Method:
    if surrogate is None:
        return default_method()
    if not capabilities_of(surrogate.method).predicts_components:
        rule = "a study of several objectives needs surrogates of hedged-prior or gp"
        raise ConfigError(f"{rule}, but that of {objective!r} is of {surrogate.name}")
    return surrogate.method


def _combine(surrogates: Mapping[str, Surrogate | None], method: HypervolumeMethod) -> Surrogate | None:
    """Returns one surrogate of all objectives, whose start designs take turns; None if there is none."""
    fitted_surrogates = {name: one for name, one in surrogates.items() if one is not None}
    if not fitted_surrogates:
        return None
    (first, *others), space = fitted_surrogates, next(iter(fitted_surrogates.values())).space
    for name in others:
        if fitted_surrogates[name].space != space:
            rule = "the surrogates of a study must have one space"
            raise ConfigError(f"{rule}, but those of {first!r} and {name!r} differ: fit them on spaces that are equal")
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(one.start for one in fitted_surrogates.values())))
    start: list[Params] = []
    for params in turns:
        if params is not None and params not in start:
            start.append(params)
    params = tuple(None if one is None else one.params for one in surrogates.values())
    return Surrogate(space, "objectives", method, params, tuple(start))


def make_engine(
    space: Space | Mapping[str, Any] | None,
    surrogate: Surrogates,
    direction: str,
    directions: Mapping[str, str] | None,
    seed: int,
    config: EngineConfig | None,
) -> Engine:
    """Returns the engine of a study.

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
        directions, surrogate = {"": direction}, {"": surrogate}
    elif direction != "minimize":
        raise ConfigError(f"a study has direction= or directions=, but got {direction!r} and {directions!r}")
    directions = check_directions(directions)
    surrogates = surrogates_by_objective(surrogate, directions)
    if space is None:
        space = next((one.space for one in surrogates.values() if one is not None), None)
    if not isinstance(space, Mapping):
        rule = "a search space must be a Space, a mapping, or a surrogate's by surrogate="
        raise ConfigError(f"{rule}, but got {reprlib.repr(space)}")
    search_space = space if isinstance(space, Space) else Space(space)
    return engine_of(search_space, surrogates, directions, seed=seed, config=config)


def engine_of(
    space: Space, surrogates: Mapping[str, Surrogate | None], directions: Mapping[str, str], **options: Any
) -> Engine:
    """Returns the engine of one objective or several, which name surrogates and directions; options as of `Engine`."""
    if len(directions) > 1:
        return ObjectivesEngine(space, surrogates, directions, **options)
    (name, direction), *_ = directions.items()
    if (config := options.get("config")) is not None and getattr(config, "reference_point", None) is not None:
        reference_point(config.reference_point, directions)  # raises
    return Engine(space, surrogates[name], direction, **options)
