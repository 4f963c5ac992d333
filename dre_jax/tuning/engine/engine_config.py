"""Settings of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dre_jax.checks import AtLeastTwo, Checked, NonNegative, Positive, Share
from dre_jax.errors import ConfigError
from dre_jax.space.scalars import plain_value, to_list
from dre_jax.suggest.pending import PendingStrategy
from dre_jax.tuning.objectives.single import DEFAULT_METHOD, entry_without_past


@dataclass(frozen=True, kw_only=True)
class EngineConfig(Checked):
    """Settings of an engine.

    Raises:
      ConfigError: for a method that is unknown or needs past tasks, an unknown pending strategy, max_history < 2, or a
        weight or a radius below 0.

    Example:
      >>> EngineConfig(pending_strategy="max").max_history
      192
    """

    method: str = DEFAULT_METHOD
    """The method that suggests without a surrogate: one that needs no past tasks, such as "gp", "random" or "dkgp"."""
    pending_strategy: PendingStrategy = "mean"
    """Stand-in for the responses of running trials: the min, mean or max of those so far (the constant liar), or what
    the method predicts ("believer", the Kriging believer; both Ginsbourger, Le Riche and Carraro 2010). With "none",
    running trials have no stand-in, and are only not proposed again. With "draw", they have none either, and every
    trial is the best by one model drawn from those that a method averages (Thompson sampling)."""
    max_history: AtLeastTwo[int] = 192
    """Maximum number of trials that a method gets, pending ones included: the best quarter, and others that are evenly
    spaced in time."""
    failed_radius: NonNegative[float] = 0.02
    """No configuration is proposed within this distance of a failed trial, in every coordinate of the unit cube."""
    failure_model: bool = True
    """Whether the probability of success is learned from failed trials; constraints are always learned."""
    belief_weight: NonNegative[float] = 5.0
    """Weight beta / (n + 1) of likely values (`Float(..., likely=)`) after n trials: beta; 0 ignores them."""
    stopping_error: Share[float] = 0.05
    """Share of the best trials that `Optimizer.should_stop` may stop."""
    budget: Positive[float] | None = None
    """Total cost of the study, in the units of `Optimizer.tell(cost=)`: the cost of a trial counts less as the budget
    is spent. By default it counts the same throughout."""
    reference_point: Any = None
    """With several objectives, the worst values that count, which `Optimizer.hypervolume` is measured from: by name, or
    in the order of the directions. By default the worst values so far, and a tenth of the range."""

    def __post_init__(self) -> None:
        super().__post_init__()
        entry_without_past(self.method)  # raises
        point = to_list(self.reference_point)
        if isinstance(point, Mapping):
            point = {name: plain_value(number) for name, number in point.items()}
        elif isinstance(point, (list, tuple)):
            point = tuple(map(plain_value, point))
        object.__setattr__(self, "reference_point", point)


def checked_config(config: EngineConfig | None) -> EngineConfig:
    """Returns settings, by default those of an `EngineConfig`. Raises `ConfigError` for anything else."""
    if config is None:
        return EngineConfig()
    if not isinstance(config, EngineConfig):
        raise ConfigError(f"config must be an EngineConfig, but got {config!r}")
    return config
