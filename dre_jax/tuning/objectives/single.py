"""What an engine needs to know of a single objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.search.method import Method, capabilities_of
from dre_jax.suggest.candidates import CandidateConfig, default_candidates
from dre_jax.suggest.layout import SpaceLayout
from dre_jax.suggest.weighting import gives_improvement
from dre_jax.tuning.engine.engine_config import DEFAULT_METHOD, method_without_past
from dre_jax.tuning.engine.infeasible_trials import rank_like_past
from dre_jax.tuning.engine.initial_design import n_first_trials
from dre_jax.tuning.engine.trial_record import EncodedTrials
from dre_jax.tuning.study.trial import Trial
from dre_jax.tuning.surrogates.surrogate import Surrogate


@dataclass(frozen=True, eq=False)
class SingleObjective:
    """An objective with its method: a surrogate's, or one without past tasks."""

    past: Surrogate | None = None
    """What is known of past tasks."""
    direction: str = "minimize"
    alone: str = DEFAULT_METHOD
    """The method without a surrogate."""

    @property
    def directions(self) -> Mapping[str, str]:
        """Of the values, by objective; a single one has the name ""."""
        return {"": self.direction}

    @cached_property
    def surrogates(self) -> Mapping[str, Surrogate | None]:
        """By objective, named as in `directions`."""
        return {"": self.past}

    @cached_property
    def method(self) -> Method:
        """The method that values candidates."""
        return method_without_past(self.alone) if self.past is None else self.past.method

    @property
    def _method_name(self) -> str:
        return self.alone if self.past is None else self.past.name

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
            raise ConfigError(f"{rule}, but {self._method_name} does not: tell the value without stderr")

    def require_improvement(self) -> None:
        """Raises `ConfigError` if the method has no expected improvement of the objective's values."""
        if not gives_improvement(self.method):
            rule = "an expected gain needs hedged-prior, gp-mixture or gp, with the acquisition function 'ei'"
            raise ConfigError(f"{rule}, but the method is {self._method_name}")

    def require_predictions(self, *, noise: bool = False) -> None:
        """Raises `ConfigError` if the method does not predict values, or, with noise, those of new trials."""
        capabilities = capabilities_of(self.method)
        if not capabilities.predicts_components:
            rule = "predictions need hedged-prior, gp-mixture or gp"
            raise ConfigError(f"{rule}, but the method is {self._method_name}")
        if noise and not capabilities.predicts_noise:
            rule = "predictions with noise need hedged-prior, gp-mixture or gp"
            raise ConfigError(f"{rule}, but the method is {self._method_name}: pass noise=False")

    def set_diverged_apart(self, study: EncodedTrials) -> EncodedTrials:
        """Returns the trials: the scale of the objective has a bound."""
        return study

    def order(self, values: np.ndarray) -> np.ndarray:
        """Returns responses f64[n] that order trials of values f64[n, M], higher is better."""
        return values.ravel()

    def rank_like_past(self, observations: Sequence[Trial], responses: np.ndarray) -> np.ndarray:
        """Returns responses f64[n], where infeasible trials are ranked as in the past tasks of the surrogate."""
        return rank_like_past(self.past, observations, responses)

    def candidates(self, layout: SpaceLayout, pending_strategy: str) -> CandidateConfig:
        """Returns the settings of the candidates."""
        return default_candidates(self.method, layout, pending_strategy)

    def params_for(self, params: Any, *_: Any) -> Any:
        """Returns the method's parameters for a history: those that it learned, on the device."""
        return params
