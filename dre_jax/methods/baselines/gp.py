"""Gaussian process with expected improvement (Snoek, Larochelle and Adams 2012; Jones et al. 1998).

A Matern 5/2 covariance with a length scale for each column, k(x, x') = s m(|x / l - x' / l|), and Gaussian noise. Its
hyperparameters maximise the marginal likelihood of the history before every trial,

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(X, X) + noise I,

times priors that decide while trials are few. The candidate with the largest expected improvement on the best response
is evaluated next.
"""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.checks import Checked
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams, PreparedGP, condition_on_history, predict_in_blocks
from dre_jax.gp.response_scale import (
    ResponseScale,
    ResponseTransform,
    best_response,
    scale_responses,
    without_uncertain,
)
from dre_jax.methods.entries.entry import Entry
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, Components, History
from dre_jax.search.method import Capabilities, NoMetaLearning


class FittedProcess(NamedTuple):
    """A Gaussian process that was fitted to a history and conditioned on it."""

    process: GPParams
    prepared_gp: PreparedGP
    incumbent: Array
    """Scalar: the best response, scaled; with known errors the best posterior mean of a trial. Minus infinity without
    any."""
    transform: ResponseTransform
    """From responses to predictions."""


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(NoMetaLearning, Checked):
    """A Gaussian process fitted to the history before every trial, without past tasks."""

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters."""
    response_scale: ResponseScale = "standardised"
    """Scale of the responses; see `scale_responses`."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""
    capabilities: ClassVar[Capabilities] = Capabilities(
        slotwise_fit=True, double_precision=True, differentiable=True, heteroscedastic=True
    )

    def response_transform(self, fitted_params: FittedProcess) -> ResponseTransform:
        """Returns the function from the history's responses to the scale of predictions."""
        return fitted_params.transform

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Values the candidates by the process, which is fitted anew."""
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)

    def fit_history(self, params: None, history: History, key: Array) -> FittedProcess:
        """Returns the process, fitted to the scaled responses and conditioned on them."""
        y, transform = scale_responses(self.response_scale, history.response, history.where)
        noise_var = transform.noise_var(history.noise_var, history.response)
        process = fit_gp(self.fitting, history.x, y, history.where, noise_var)
        prepared_gp = condition_on_history(process, history.x, y, history.where, noise_var)
        if noise_var is not None:
            mean, _ = predict_in_blocks(process, history.x, prepared_gp, history.x)
            y = without_uncertain(y, mean, noise_var, history.where)
        return FittedProcess(process, prepared_gp, best_response(y, history.incumbents), transform)

    def score_candidates(self, fitted_params: FittedProcess, history: History, candidates: Candidates) -> Array:
        """Values the candidates by the fitted process."""
        _, mean, deviation = self.predict_components(fitted_params, history, candidates)
        noise = jnp.exp(0.5 * fitted_params.process.log_noise)
        return acquire_by_response(self.acquisition, mean[:, 0], deviation[:, 0], fitted_params.incumbent, noise)

    def predict_components(self, fitted_params: FittedProcess, history: History, candidates: Candidates) -> Components:
        """Returns the predictions of the fitted process, one component."""
        mean, variance = predict_in_blocks(fitted_params.process, history.x, fitted_params.prepared_gp, candidates.x)
        return Components(jnp.zeros(1, mean.dtype), mean[:, None], jnp.sqrt(variance)[:, None])

    def noise_deviations(self, fitted_params: FittedProcess, noise_var: Array) -> Array:
        """Returns the standard deviation of the noise of a new trial, f[1]."""
        return jnp.sqrt(jnp.exp(fitted_params.process.log_noise) + noise_var)[None]


ENTRIES = (
    Entry(
        name="gp",
        summary="Gaussian process, Matern 5/2, expected improvement",
        paper="Snoek, Larochelle and Adams 2012",
        default=GaussianProcess(),
    ),
)
