"""What an engine needs to know of several objectives."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import jax
import numpy as np
import numpy.typing as npt

from dre_jax.data.tasks import tie_levels
from dre_jax.errors import ConfigError
from dre_jax.search.method import PosteriorMethod
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.space import Params, Space
from dre_jax.suggest.candidates import CandidateConfig, default_candidates
from dre_jax.suggest.precision import Dtype
from dre_jax.tuning.objectives.front import boxes_above, has_diverged, order_by_front, unit_reference, unit_values
from dre_jax.tuning.objectives.hypervolume_method import HypervolumeMethod, ObjectiveParams
from dre_jax.tuning.objectives.single import N_START, SingleObjective
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.encoding import EncodedTrials, with_failed
from dre_jax.tuning.trials.objectives import Objective, values_of
from dre_jax.tuning.trials.trial import Trial

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
        self._reference = reference

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

    def set_diverged_apart(self, study: EncodedTrials) -> EncodedTrials:
        """Returns the trials with diverged ones as failed ones, so that the model of failures learns from them.

        The front cannot use a trial with one infinite objective, however good the others are. The process of that
        objective would take an infinite value among good neighbours for noise everywhere.
        """
        mask = has_diverged(values_of(study.observations, self.objectives).reshape(-1, len(self.parts)))
        return with_failed(study, mask) if mask.any() else study

    def order(self, values: np.ndarray) -> np.ndarray:
        """Returns the places f64[n] in the front of trials of values f64[n, M]."""
        return order_by_front(unit_values(values))

    def rank_like_past(self, observations: Sequence[Trial], responses: np.ndarray) -> np.ndarray:
        """Returns the responses: past tasks have no front."""
        return responses

    def candidates(self, layout: SpaceLayout, pending_strategy: str) -> CandidateConfig:
        """Returns the settings of the candidates."""
        strategy = "none" if pending_strategy == "none" else "mean"  # the method imputes by objective
        return replace(default_candidates(self.method, layout, strategy), parents=_PARENTS)

    def params_for(
        self,
        params: Any,
        observations: Sequence[Trial],
        responses: np.ndarray,
        rows: np.ndarray,
        capacity: int,
        dtype: Dtype,
    ) -> ObjectiveParams:
        """Returns the method's parameters for a history of some rows of the trials, from `past.params`."""
        values = values_of(observations, self.objectives)
        scaled_values = unit_values(values)
        feasible = np.array([trial.is_feasible for trial in observations])
        reference = None if self._reference is None else unit_reference(values, self._reference)
        empty = (0, capacity - len(rows))
        arrays = (
            np.stack([np.pad(column, empty) for column in self._ranked_like_past(observations, scaled_values)[rows].T]),
            np.stack([np.pad(tie_levels(a), empty) for a in self._ranked_like_past(observations, values)[rows].T]),
            np.arange(capacity) < len(rows),
            boxes_above(scaled_values, responses, feasible, capacity, reference),
        )
        arrays = jax.tree.map(lambda a: a.astype(dtype) if a.dtype == np.float64 else a, arrays)
        return ObjectiveParams(params or (None,) * len(self.parts), *jax.device_put(arrays))

    def _ranked_like_past(self, observations: Sequence[Trial], values: np.ndarray) -> np.ndarray:
        """Returns values f64[n, M] with infeasible trials ranked like the past trials of each objective."""
        columns = zip(self.parts.values(), values.T, strict=True)
        return np.stack([part.rank_like_past(observations, column) for part, column in columns], axis=1)


def _posterior_method(name: str, part: SingleObjective) -> PosteriorMethod:
    if isinstance(part.method, PosteriorMethod):
        return part.method
    if part.past is None:
        raise ConfigError(f"a study of several objectives needs gp-mixture or gp, but the method is {part.alone}")
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
