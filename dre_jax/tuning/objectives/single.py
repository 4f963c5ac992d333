"""What an engine needs to know of a single objective, with or without past tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.methods import Entry, find
from dre_jax.search.method import Method, PosteriorMethod, capabilities_of
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.candidates import CandidateConfig, default_candidates
from dre_jax.suggest.weighting import gives_improvement
from dre_jax.tuning.surrogates.surrogate import Surrogate

DEFAULT_METHOD = "gp-mixture"
"""The method without past tasks: on live functions it has less regret than `gp` and TPE (docs/results/live.md)."""
GP_SETTINGS: Mapping[str, Any] = {
    "fitting.optimiser": "bfgs",
    "fitting.steps": 30,
    "fitting.first_log_noises": (-9.0, -1.0),
    "fitting.log_noise_prior": (-6.0, 4.0),
    "fitting.least_noise": 1e-8,
}
"""Settings of `gp` on live functions: a better fit in a fifth of the time, and a noise floor for float64. The results
on tables in docs/results are without them."""

N_START = 4
"""Number of Sobol points that are evaluated first without a surrogate, at least."""
_MAX_START, _COLUMNS_PER_START = 10, 3


@dataclass(frozen=True, eq=False)
class SingleObjective:
    """An objective with its method: a surrogate's, or one without past tasks."""

    past: Surrogate | None = None
    """What is known of past tasks."""
    direction: str = "minimize"
    alone: str | Method = DEFAULT_METHOD
    """The method without a surrogate, or its name."""
    reference: None = None
    """There is no hypervolume."""

    @cached_property
    def method(self) -> Method:
        """The method that values candidates."""
        if self.past is not None:
            return self.past.method
        return method_without_past(self.alone) if isinstance(self.alone, str) else self.alone

    @property
    def method_name(self) -> str:
        """The name of the method."""
        if self.past is not None:
            return self.past.name
        return self.alone if isinstance(self.alone, str) else type(self.alone).__name__

    @property
    def ranks_infeasible(self) -> tuple[bool, ...]:
        """Whether past tasks rank trials that violate constraints last."""
        return (self.past is not None and self.past.constrained,)

    @property
    def values_first_trial(self) -> bool:
        """Whether the method values candidates before any trial has a value."""
        return self.past is not None

    def n_start(self, n_parts: int) -> int:
        """Returns the number of trials that precede those of the method, without a surrogate, of P hyperparameters."""
        return n_first_trials(n_parts)

    def require_standard_errors(self) -> None:
        """Raises `ConfigError` if the method cannot use standard errors of responses."""
        if not capabilities_of(self.method).heteroscedastic:
            rule = "standard errors need a method that uses them, as hedged-prior and gp-mixture"
            raise ConfigError(f"{rule}, but {self.method_name} does not: tell the value without stderr")

    def require_improvement(self) -> None:
        """Raises `ConfigError` if the method has no expected improvement of the objective's values."""
        if not gives_improvement(self.method):
            rule = "an expected gain needs hedged-prior, gp-mixture or gp, with the acquisition function 'ei'"
            raise ConfigError(f"{rule}, but the method is {self.method_name}")

    def require_predictions(self) -> PosteriorMethod:
        """Returns the method; raises `ConfigError` if it does not predict values."""
        if not isinstance(self.method, PosteriorMethod):
            rule = "predictions need hedged-prior, gp-mixture or gp"
            raise ConfigError(f"{rule}, but the method is {self.method_name}")
        return self.method

    def candidates(self, layout: SpaceLayout, pending_strategy: str) -> CandidateConfig:
        """Returns the settings of the candidates."""
        return default_candidates(self.method, layout, pending_strategy)


def n_first_trials(n_parts: int) -> int:
    """Returns the number of Sobol points that are evaluated first without a surrogate, for P hyperparameters.

    Example:
      >>> n_first_trials(2), n_first_trials(18), n_first_trials(60)
      (4, 6, 10)
    """
    return min(max(N_START, n_parts // _COLUMNS_PER_START), _MAX_START)


def method_without_past(name: str) -> Method:
    """Returns a method of the registry that learns from no past tasks, set for live functions.

    Raises:
      ConfigError: for an unknown name, a method that learns from past tasks, or one that is not in JAX.
    """
    return entry_without_past(name).make(dict(GP_SETTINGS) if name == "gp" else None)


def entry_without_past(name: str) -> Entry:
    """Returns the entry of a method that learns from no past tasks. Raises `ConfigError` as `method_without_past`."""
    entry = find(name)
    if entry.default is None:
        raise ConfigError(f"a method without past tasks must be one in JAX, as gp and random, but got {name!r}")
    if entry.transfer:
        raise ConfigError(f"{name} learns from past tasks: pass surrogate=Surrogate.fit(past, method={name!r})")
    return entry
