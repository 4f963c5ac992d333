"""What an engine needs to know of several objectives."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from dre_jax.errors import ConfigError
from dre_jax.search.method import PosteriorMethod
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.space import Params, Space
from dre_jax.suggest.candidates import CandidateConfig, default_candidates
from dre_jax.tuning.objectives.hypervolume_method import HypervolumeMethod
from dre_jax.tuning.objectives.single import N_START, SingleObjective
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import Objective

_MAX_START = 10
_PARENTS = 12  # points of the front that candidates are drawn around


class JoinedPast(NamedTuple):
    """What is known of past tasks of several objectives, as `Surrogate` has it of one."""

    space: Space
    params: tuple[Any, ...]
    """By objective; None without a surrogate."""
    start: tuple[Params, ...]
    """The start designs, in turns."""
    studies: None = None
    """Costs are not learned from them."""


class SeveralObjectives:
    """Objectives whose candidates are valued by the expected hypervolume improvement, with one method for each."""

    values_first_trial = False

    def __init__(
        self,
        parts: Mapping[str, SingleObjective],
        pending_strategy: str,
        reference: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Joins two or more objectives, by name.

        The reference point f64[M] of the hypervolume is as `reference_point` returns it; None for the worst values.

        Raises `ConfigError` for surrogates of different spaces, a method that does not
        predict responses, or a pending strategy that a method does not support.
        """
        self.parts = dict(parts)
        members = tuple(_posterior_method(name, part) for name, part in self.parts.items())
        self.method = HypervolumeMethod(members=members, pending_strategy=pending_strategy)
        self.objectives = tuple(Objective(name, part.direction) for name, part in self.parts.items())
        self.past = _join({name: part.past for name, part in self.parts.items()})
        self.reference = None if reference is None else tuple(map(float, reference))

    @property
    def ranks_infeasible(self) -> tuple[bool, ...]:
        """By objective, whether past tasks rank trials that violate constraints last."""
        return tuple(ranks for part in self.parts.values() for ranks in part.ranks_infeasible)

    def n_start(self, n_parts: int) -> int:
        """Returns the number of trials that precede those of the method, without a surrogate, of P hyperparameters."""
        # With fewer in many dimensions, the next trials are in corners of the space, far from the front.
        return min(max(2 * n_parts - 2, N_START), _MAX_START)

    def require_standard_errors(self) -> None:
        """Raises `ConfigError`."""
        raise ConfigError("standard errors need a study of one objective: tell the values without stderr")

    def require_improvement(self) -> None:
        """Raises `ConfigError`."""
        raise ConfigError("an expected gain needs a study of one objective")

    def require_predictions(self) -> NoReturn:
        """Raises `ConfigError`: the parts predict."""
        raise ConfigError("predictions are of one objective")

    def candidates(self, layout: SpaceLayout, pending_strategy: str) -> CandidateConfig:
        """Returns the settings of the candidates."""
        strategy = "none" if pending_strategy == "none" else "mean"  # the method imputes by objective
        return replace(default_candidates(self.method, layout, strategy), parents=_PARENTS)


def _posterior_method(name: str, part: SingleObjective) -> PosteriorMethod:
    if isinstance(part.method, PosteriorMethod):
        return part.method
    if part.past is None:
        raise ConfigError(f"a study of several objectives needs gp-mixture or gp, but the method is {part.method_name}")
    rule = "a study of several objectives needs surrogates of hedged-prior or gp"
    raise ConfigError(f"{rule}, but that of {name!r} is of {part.past.name}")


def _join(surrogates: Mapping[str, Surrogate | None]) -> JoinedPast | None:
    """Returns the knowledge of the surrogates; None without surrogates."""
    fitted_surrogates = {name: fitted for name, fitted in surrogates.items() if fitted is not None}
    if not fitted_surrogates:
        return None
    (first, *other_names), space = fitted_surrogates, next(iter(fitted_surrogates.values())).space
    for name in other_names:
        if fitted_surrogates[name].space != space:
            rule = "the surrogates of a study must have one space"
            raise ConfigError(f"{rule}, but those of {first!r} and {name!r} differ: fit them on spaces that are equal")
    turns = itertools.chain.from_iterable(
        itertools.zip_longest(*(fitted.start for fitted in fitted_surrogates.values()))
    )
    start: list[Params] = []
    for params in turns:
        if params is not None and params not in start:
            start.append(params)
    params = tuple(None if fitted is None else fitted.params for fitted in surrogates.values())
    return JoinedPast(space, params, tuple(start))
