"""Expected hypervolume improvement by one method per objective, as one method.

The history orders the trials by their place in the front; the values of the objectives are parameters. Each member is
fitted to its own objective's values. `dre_jax.suggest.hypervolume` combines the predictions of two or three objectives,
and `dre_jax.suggest.polar` those of more.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig
from dre_jax.search.history import Candidates, Components, History
from dre_jax.search.method import Capabilities, PosteriorMethod, capabilities_of
from dre_jax.suggest.hypervolume import Boxes, log_expected_excess, log_hypervolume_improvement
from dre_jax.suggest.pending import check_pending_strategy, with_pending_trials
from dre_jax.suggest.polar import Front, Rays, log_polar_improvement, rays_beyond

_ROWS = 128  # candidates at once, each of which has hundreds of rays


class ObjectiveParams(NamedTuple):
    """What the members learned, and the values of M objectives in C slots."""

    members: tuple[Any, ...]
    """What each member's `fit` returned."""
    response: Array
    """f[M, C], higher is better."""
    level: Array
    """i32[M, C], as `History.level`."""
    where: Array
    """bool[C]: the completed trials."""
    region: Boxes | Front
    """What the front leaves, on the scale of the responses."""
    noise_var: Array | None = None
    """f[M, C], as `History.noise_var`; None without known errors."""


class FittedObjective(NamedTuple):
    """A member fitted to its objective."""

    params: Any
    history: History
    thresholds: Array
    """f[T], those of the region on the scale of the member's predictions."""


Region = Boxes | Rays
"""What the front leaves: boxes with the thresholds of the fitted objectives, or rays on the scale of predictions."""


@dataclass(frozen=True, kw_only=True)
class HypervolumeMethod:
    """One method per objective.

    Raises `ConfigError` for a pending strategy that a member does not support.
    """

    members: tuple[PosteriorMethod, ...]
    """The methods, in the order of the objectives."""
    pending_strategy: str = "mean"
    """As `CandidateConfig.pending_strategy`, for each objective."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT

    def __post_init__(self) -> None:
        for member in self.members:
            check_pending_strategy(member, self.pending_strategy)

    @property
    def capabilities(self) -> Capabilities:
        """What all members can do; known errors are for those that use them."""
        member_capabilities = [capabilities_of(member) for member in self.members]
        return Capabilities(
            double_precision=all(capabilities.double_precision for capabilities in member_capabilities),
            differentiable=all(capabilities.differentiable for capabilities in member_capabilities),
            heteroscedastic=any(capabilities.heteroscedastic for capabilities in member_capabilities),
        )

    def fit(self, meta: Any, key: Array) -> None:
        """Returns None: each member is fitted to past tasks of its own."""

    def acquire(self, params: ObjectiveParams, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the log expected hypervolume improvement of the candidates."""
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)

    def fit_history(
        self, params: ObjectiveParams, history: History, key: Array
    ) -> tuple[tuple[FittedObjective, ...], Region]:
        """Returns the fitted members, and what the front leaves; pending trials are imputed for each objective."""
        pending = history.where & ~params.where

        def fit(
            member: PosteriorMethod,
            member_params: Any,
            response: Array,
            level: Array,
            thresholds: Array,
            noise_var: Array | None,
        ) -> FittedObjective:
            noise_var = noise_var if capabilities_of(member).heteroscedastic else None
            trials = History(history.x, response, level, params.where, noise_var)
            joint = with_pending_trials(member, member_params, trials, history.x, pending, self.pending_strategy, key)
            fitted_params = member.fit_history(member_params, joint, key)
            thresholds = member.response_transform(fitted_params).apply(thresholds)
            return FittedObjective(fitted_params, joint, thresholds)

        noise_var = (None,) * len(self.members) if params.noise_var is None else params.noise_var
        values = params.response, params.level, params.region.thresholds, noise_var
        objectives = tuple(map(fit, self.members, params.members, *values))
        if isinstance(params.region, Boxes):
            return objectives, params.region
        thresholds = jnp.stack([objective.thresholds for objective in objectives])
        return objectives, rays_beyond(thresholds, params.region.where)

    def score_candidates(
        self, fitted_params: tuple[tuple[FittedObjective, ...], Region], history: History, candidates: Candidates
    ) -> Array:
        """Returns the log expected hypervolume improvement of the candidates."""
        objectives, region = fitted_params

        def predict(rows: Array, where: Array) -> list[Components]:
            return [
                member.predict_components(objective.params, objective.history, Candidates(rows, where))
                for member, objective in zip(self.members, objectives, strict=True)
            ]

        if isinstance(region, Rays):
            return by_blocks(
                lambda rows: log_polar_improvement(region, predict(rows, jnp.ones(len(rows), bool))),
                candidates.x,
                _ROWS,
            )
        excess = [
            log_expected_excess(prediction, objective.thresholds)
            for prediction, objective in zip(predict(*candidates), objectives, strict=True)
        ]
        return log_hypervolume_improvement(region, jnp.stack(excess))
