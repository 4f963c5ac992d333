"""A searcher for Syne Tune's single-objective schedulers: suggestions of dre_jax, with a surrogate if there is one.

    scheduler = SingleObjectiveScheduler(config_space, metric="loss", searcher=DRESearcher(config_space, surrogate))

Numbers, choices and ordinals of the configuration space are searched; constants are passed on. The scheduler turns a
metric that is maximised, so values are minimised here.
"""

from __future__ import annotations

from typing import Any

from syne_tune import config_space as cs
from syne_tune.optimizer.schedulers.searchers.single_objective_searcher import SingleObjectiveBaseSearcher

from dre_jax.tuning import Categorical, Float, Int, Optimizer, Space, Surrogate


class DRESearcher(SingleObjectiveBaseSearcher):
    """Suggests the configurations of `dre_jax.tuning.Optimizer`."""

    def __init__(
        self, config_space: dict[str, Any], surrogate: Surrogate | None = None, *, random_seed: int | None = None
    ) -> None:
        super().__init__(config_space, points_to_evaluate=[], random_seed=random_seed)
        self._constants = {name: value for name, value in config_space.items() if not isinstance(value, cs.Domain)}
        self.optimizer = Optimizer(space_of(config_space), surrogate, direction="minimize", seed=self.random_seed)

    def suggest(self, **_: Any) -> dict[str, Any]:
        return self._constants | self.optimizer.ask().params

    # Syne Tune numbers trials in the order of suggestions, as the optimizer does.

    def on_trial_complete(self, trial_id: int, config: dict[str, Any], metric: float) -> None:
        self.optimizer.tell(trial_id, metric)

    def on_trial_error(self, trial_id: int) -> None:
        self.optimizer.tell_failed(trial_id)


def space_of(config_space: dict[str, Any]) -> Space:
    """Returns the search space of a configuration space; raises `TypeError` for a domain of another kind."""
    space = {}
    for name, domain in config_space.items():
        if isinstance(domain, cs.Categorical):
            space[name] = Categorical(domain.categories, ordered=isinstance(domain, cs.Ordinal))
        elif isinstance(domain, cs.FiniteRange):
            space[name] = Categorical(domain.values, ordered=True)
        elif isinstance(domain, (cs.Float, cs.Integer)):
            kind = Float if isinstance(domain, cs.Float) else Int
            space[name] = kind(domain.lower, domain.upper, log=cs.is_log_space(domain))
        elif isinstance(domain, cs.Domain):
            raise TypeError(f"a domain must be of numbers or choices, but {name} is {domain!r}")
    return Space(space)
