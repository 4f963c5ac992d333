"""Gaussian processes with fixed, fitted and drawn hyperparameters, averaged by evidence; without past tasks.

Few trials do not determine length scales: the most likely ones are often far too long or too short, and a search that
trusts them stops early or tries the edges. Here processes with fixed length scales, others that are fitted to the
trials, and others whose length scales, noise and warps are drawn are components of a mixture. The trials' evidence
weights them, the fitted ones by their predictions (`dre_jax.methods.hedged_prior.task_processes`). The expected
improvement is the weighted sum of the components'. These are the processes without past tasks of
`dre_jax.methods.hedged_prior`, on their own.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import AboveTwo, Checked
from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.response_scale import ResponseTransform, ScaledResponses, best_response, scale_by_evidence
from dre_jax.gp.student import log_student_t_density
from dre_jax.methods.baselines.shared import NoMetaLearning
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.hedged_prior.improvement_weights import interpolate_noise
from dre_jax.methods.hedged_prior.priors import Trials
from dre_jax.methods.hedged_prior.task_process import (
    TaskHyperpriors,
    TaskPosterior,
    TaskProcess,
    task_covariance_and_residuals,
)
from dre_jax.methods.hedged_prior.task_processes import TaskProcessConfig, condition_processes, fixed_processes
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import (
    EXPECTED_IMPROVEMENT,
    AcquisitionConfig,
    acquire_by_response,
    log_mixture_improvement,
    mixture_moments,
)
from dre_jax.search.history import Candidates, Components, History
from dre_jax.search.method import Capabilities


class FittedMixture(NamedTuple):
    """Processes that were fitted to a history and conditioned on it."""

    trials: Trials
    processes: TaskPosterior
    """K in front of each array."""
    log_weight: Array
    """f[K]: logarithms of weights that sum to one."""
    incumbent: Array
    """Scalar: the best response, scaled; with known errors the best posterior mean of a trial. Minus infinity without
    any."""
    transform: ResponseTransform
    """From responses to predictions."""


@dataclass(frozen=True, kw_only=True)
class GaussianProcessMixture(NoMetaLearning, Checked):
    """A mixture of Gaussian processes, without past tasks.

    Raises:
      ConfigError: if ``degrees_of_freedom`` is not above 2.

    Example:
      >>> GaussianProcessMixture().processes.lengthscales
      (0.1, 0.25, 0.6)
    """

    processes: TaskProcessConfig = field(default_factory=TaskProcessConfig)
    """The fixed, fitted and drawn processes."""
    degrees_of_freedom: AboveTwo[float] = 5.0
    """nu > 2 of the variance scale of the task; see `dre_jax.gp.student`."""
    linear_log_odds: float = 2.0
    """Log-odds, before the first trial, of a linear response scale; the other one compresses responses below the
    median. The evidence of the fixed processes chooses one; see `scale_by_evidence`."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""
    capabilities: ClassVar[Capabilities] = Capabilities(
        fits_history=True,
        slotwise_fit=True,
        samples_posterior=True,
        double_precision=True,
        differentiable=True,
        heteroscedastic=True,
        improvement=True,
        predicts_components=True,
        predicts_noise=True,
        transforms_responses=True,
    )

    def response_transform(self, fitted_params: FittedMixture) -> ResponseTransform:
        """Returns the function from the history's responses to the scale of predictions."""
        return fitted_params.transform

    def _scale(self, history: History) -> tuple[Trials, ResponseTransform]:
        """Returns the trials on the scale of higher evidence."""
        where, dtype = history.where, history.response.dtype
        x = jnp.where(where[:, None], history.x, 0.0)
        fixed = fixed_processes(self.processes, _hyperpriors(x.shape[1], dtype))
        nu = jnp.asarray(self.degrees_of_freedom, dtype)

        def trials_of(scaled: ScaledResponses) -> Trials:
            noise_var = scaled.transform.noise_var(history.noise_var, history.response)
            return Trials(x, scaled.y, where, noise_var, jnp.zeros_like(scaled.y))

        def log_density(scaled: ScaledResponses) -> Array:
            trials = trials_of(scaled)

            def of_process(process: TaskProcess) -> Array:
                return log_student_t_density(*task_covariance_and_residuals(process, trials), where, nu)

            return jax.nn.logsumexp(jax.vmap(of_process)(fixed))

        scaled = scale_by_evidence(history.response, where, log_density, self.linear_log_odds)
        return trials_of(scaled), scaled.transform

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Values the candidates by the mixture, whose processes are fitted anew."""
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)

    def fit_history(self, params: None, history: History, key: Array) -> FittedMixture:
        """Returns the processes, fitted to the scaled responses and conditioned on them."""
        trials, transform = self._scale(history)
        y, where = trials.y, trials.where
        hyperpriors = _hyperpriors(trials.x.shape[1], y.dtype)
        processes = condition_processes(self.processes, hyperpriors, trials, self.degrees_of_freedom)
        log_weight = jax.nn.log_softmax(processes.log_weight)
        fitted = FittedMixture(trials, processes.posterior, log_weight, best_response(y, where), transform)
        if trials.noise_var is None:
            return fitted
        means, _ = mixture_moments(log_weight, *component_moments(fitted, trials.x))
        return fitted._replace(incumbent=best_response(means, where))

    def score_candidates(self, fitted_params: FittedMixture, history: History, candidates: Candidates) -> Array:
        """Values the candidates by the mixture."""
        log_weight, noise = fitted_params.log_weight, jnp.sqrt(fitted_params.processes.noise_variances())
        improvement_log_weight = interpolate_noise(self.processes, log_weight, noise)

        def values(rows: Array) -> Array:
            moments = component_moments(fitted_params, rows)
            if self.acquisition.function.is_expected_improvement:
                return log_mixture_improvement(improvement_log_weight, *moments, fitted_params.incumbent, noise)
            mean, variance = mixture_moments(log_weight, *moments)
            return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), fitted_params.incumbent)

        return by_blocks(values, candidates.x)

    def predict_components(self, fitted_params: FittedMixture, history: History, candidates: Candidates) -> Components:
        """Returns the predictions of all processes."""

        def predict(rows: Array) -> tuple[Array, Array]:
            means, variances = component_moments(fitted_params, rows)
            return means.T, jnp.sqrt(variances).T

        return Components(fitted_params.log_weight, *by_blocks(predict, candidates.x))

    def noise_deviations(self, fitted_params: FittedMixture, noise_var: Array) -> Array:
        """Returns the standard deviations of the noise of a new trial under all processes, f[K]."""
        return jnp.sqrt(fitted_params.processes.noise_variances(noise_var))

    def sample_posterior(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Samples the responses of one function from the mixture, f[N], for batches."""
        fit_key, process_key, function_key = jax.random.split(key, 3)
        fitted = self.fit_history(params, history, fit_key)
        chosen = jax.random.categorical(process_key, fitted.log_weight)
        function = jax.tree.map(lambda a: a[chosen], fitted.processes).sample(fitted.trials, function_key)
        return by_blocks(lambda rows: function(rows, jnp.zeros(len(rows), rows.dtype)), candidates.x)


def _hyperpriors(n_columns: int, dtype: Any) -> TaskHyperpriors:
    """Returns the generic prior."""
    return TaskHyperpriors(jax.tree.map(lambda a: a.astype(dtype), generic_prior(n_columns)))


def component_moments(fitted: FittedMixture, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of every process at configurations f[m, D], two f[K, m]."""
    no_trend = jnp.zeros(len(new), new.dtype)
    return jax.vmap(lambda process: process.moments(fitted.trials, new, no_trend))(fitted.processes)


ENTRIES = (
    Entry(
        name="gp-mixture",
        summary="Gaussian processes of fixed, fitted and drawn length scales, averaged by evidence; this library's own",
        paper="this library",
        default=GaussianProcessMixture(),
    ),
)
