"""Base classes of methods: with predicted responses, from past tasks."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.gp.fit import GPConfig
from dre_jax.gp.response_scale import best_response, standardise
from dre_jax.gp.source_processes import SourceProcesses, SourceTasks, fit_sources
from dre_jax.methods.baselines.source_processes import source_tasks
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History


@dataclass(frozen=True, kw_only=True)
class ByResponse:
    """A method that predicts responses by `predict`."""

    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    def acquire(self, params: Any, history: History, candidates: Candidates, key: Array) -> Array:
        """Values the candidates by the predictions of their standardised responses."""
        y = standardise(history.response, history.where).y
        mean, variance = self.predict(params, history, y, candidates, key)
        return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), best_response(y, history.incumbents))

    def predict(
        self, params: Any, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance at the candidates, two f32[N]; y is f32[C], standardised responses."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class FromSources:
    """A method that has a Gaussian process of each past task."""

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters."""
    rows: int = 100
    """Rows of a past task that its Gaussian process is conditioned on, at most."""

    def abstract_params(self, n_columns: int) -> SourceProcesses:
        """Returns the shapes of the Gaussian process of one task of one row."""

        def processes() -> SourceProcesses:
            task = SourceTasks(jnp.zeros((1, 1, n_columns)), jnp.zeros((1, 1)), jnp.ones((1, 1), bool))
            return fit_sources(self.fitting, task)

        return jax.eval_shape(processes)

    @on_one_thread
    def fit(self, meta: SearchSpace, key: Array) -> SourceProcesses:
        """Returns a Gaussian process of each training task."""
        return fit_sources(self.fitting, source_tasks(meta, self.rows, key))


def mixture_moments(means: Array, variances: Array) -> tuple[Array, Array]:
    """Returns the mean and variance, two f[n], of a mixture of equal parts with means f[M, n] (law of total variance).

    The variances of the parts broadcast against the means. Their mean and the variance of the means are added, so that
    nothing cancels.
    """
    mean = jnp.mean(means, axis=0)
    return mean, jnp.mean(variances + (means - mean[None, :]) ** 2, axis=0)


def gaussian_nll(mean: Array, response: Array, variance: Array) -> Array:
    """Returns ln(variance)/2 + (response - mean)^2 / (2 variance) of each item (Lakshminarayanan et al. 2017).

    Example:
      >>> float(gaussian_nll(jnp.float32(1.0), jnp.float32(3.0), jnp.float32(1.0)))
      2.0
    """
    return jnp.log(variance) / 2.0 + (response - mean) ** 2 / (2.0 * variance)
