"""The functions of the protocol that methods with a mixture of Gaussian processes have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

from dre_jax.checks import Checked
from dre_jax.gp.response_scale import ResponseTransform, best_response, without_uncertain
from dre_jax.gp.task_processes import TaskProcessConfig
from dre_jax.methods.hedged_prior.improvement_weights import interpolate_noise, select_leading
from dre_jax.methods.hedged_prior.mixture import MixturePosterior
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, Components, History
from dre_jax.search.method import Capabilities


class ConditionedMixture(NamedTuple):
    """The mixture conditioned on a history."""

    posterior: MixturePosterior
    incumbent: Float[Array, ""]
    """The best response, scaled, or the posterior mean of one with a large error. Minus infinity without any."""
    log_weight: Float[Array, " components"]
    """Weights of the components in the expected improvement; see `improvement_weights`."""
    transform: ResponseTransform
    """From responses to predictions."""


@dataclass(frozen=True, kw_only=True)
class MixtureMethod(Checked):
    """A method that conditions a mixture of Gaussian processes on the history; its subclasses define `condition`."""

    processes: TaskProcessConfig = field(default_factory=TaskProcessConfig)
    """The fixed, fitted and drawn processes of the task."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""
    capabilities: ClassVar[Capabilities] = Capabilities(
        slotwise_fit=True, double_precision=True, differentiable=True, heteroscedastic=True
    )

    def condition(self, params: Any, history: History) -> tuple[MixturePosterior, ResponseTransform]:
        """Returns the mixture given a history, whose responses are scaled here, and their scale."""
        raise NotImplementedError

    def improvement_log_weights(self, posterior: MixturePosterior) -> Float[Array, " components"]:
        """Returns the log weights of the components in the expected improvement, before `interpolate_noise`."""
        return posterior.log_weight

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Key[Array, ""]) -> Float[Array, " N"]:
        """Returns the acquisition values of the candidates; before the first trial, the mean of the mixture."""
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)

    def fit_history(self, params: Any, history: History, key: Key[Array, ""]) -> ConditionedMixture:
        """Returns the mixture conditioned on the history."""
        posterior, transform = self.condition(params, history)
        y = posterior.trials.response
        if history.noise_var is not None:
            mean, _ = posterior.predict(posterior.trials.x)
            y = without_uncertain(y, mean, history.noise_var, history.where)
        log_weight = self.improvement_log_weights(posterior)
        log_weight = interpolate_noise(self.processes, log_weight, posterior.noise_deviations(), posterior.n_past)
        if posterior.past:
            log_weight = select_leading(posterior, log_weight)
        return ConditionedMixture(posterior, best_response(y, history.incumbents), log_weight, transform)

    def score_candidates(
        self, fitted_params: ConditionedMixture, history: History, candidates: Candidates
    ) -> Float[Array, " N"]:
        """Returns the acquisition values of the candidates under the conditioned mixture."""
        posterior, incumbent, log_weight, _ = fitted_params
        if self.acquisition.function.is_expected_improvement:
            has_incumbent = jnp.isfinite(incumbent)
            best = jnp.where(has_incumbent, incumbent, 0.0)
            mean, improvement = posterior.mean_and_improvement(candidates.x, best, log_weight)
            return jnp.where(has_incumbent, improvement, mean)
        mean, variance = posterior.predict(candidates.x)
        return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), incumbent)

    def predict_components(
        self, fitted_params: ConditionedMixture, history: History, candidates: Candidates
    ) -> Components:
        """Returns the predictions of all components of the conditioned mixture."""
        posterior = fitted_params.posterior

        def predict(rows: Array) -> tuple[Array, Array]:
            means, variances = posterior.component_moments(rows)
            return means.T, jnp.sqrt(variances).T

        return Components(posterior.log_weight, *by_blocks(predict, candidates.x))

    def noise_deviations(
        self, fitted_params: ConditionedMixture, noise_var: Float[Array, ""]
    ) -> Float[Array, " components"]:
        """Returns the standard deviations of the noise of a new trial under all components."""
        return fitted_params.posterior.noise_deviations(noise_var)

    def response_transform(self, fitted_params: ConditionedMixture) -> ResponseTransform:
        """Returns the function from the history's responses to the scale of predictions."""
        return fitted_params.transform

    def sample_posterior(
        self, params: Any, history: History, candidates: Candidates, key: Key[Array, ""]
    ) -> Float[Array, " N"]:
        """Samples the responses of one function from the mixture, for batches."""
        return self.condition(params, history)[0].sample(candidates.x, key)
