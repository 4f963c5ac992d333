"""Transfer by ranking meta-features: two-stage surrogate (TST) and transfer acquisition function (TAF).

Both have a Gaussian process for each past task and one for the new task. `tst` (Wistuba, Schilling and Schmidt-Thieme
2016) weights their means by the distances d_i of the tasks,

    mu(x) = sum_i w_i mu_i(x) / sum_i w_i,     w_i = K(d_i / rho),     K(t) = 3/4 (1 - t^2) for t <= 1, else 0

(equations 8 and 9), where d_i is the share of pairs of trials that mu_i orders wrongly (equation 11). The new task has
distance 0, so its weight is never zero, and the deviation is that of its own Gaussian process.

`taf` (Wistuba, Schilling and Schmidt-Thieme 2018) weights acquisition functions with the same weights, not predictions:

    a(x) = (w_t EI_t(x) + sum_i w_i I_i(x)) / (w_t + sum_i w_i),     I_i(x) = max(0, mu_i(x) - max_j mu_i(x_j))

(equations 17 and 18), where I_i is the improvement on the best of the trials x_j that past task i predicts.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fit import fit_gp
from dre_jax.gp.kernels import epanechnikov
from dre_jax.gp.regression import gp_posterior, matmul
from dre_jax.gp.response_scale import best_response, standardise
from dre_jax.gp.source_processes import SourceProcesses, predict_means
from dre_jax.methods.baselines.shared import ByResponse, FromSources
from dre_jax.methods.baselines.source_processes import misranked_share
from dre_jax.methods.entries.entry import Entry
from dre_jax.search.acquisition import log_expected_improvement
from dre_jax.search.history import Candidates, History


@dataclass(frozen=True, kw_only=True)
class TST(FromSources, ByResponse):
    """Means of past tasks' Gaussian processes, weighted by how alike they rank the trials."""

    bandwidth: float = 0.35
    """rho: share of misranked pairs from which a past task has no weight. It was chosen on validation tasks, where the
    best of 0.1, 0.2, 0.35, 0.5 and 1 differed for `tst` and `taf`."""

    def predict(
        self, params: SourceProcesses, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the weighted mean of all Gaussian processes, and the variance of the task's own process."""
        process = fit_gp(self.fitting, history.x, y, history.where)
        weights = source_weights(params, history, self.bandwidth)
        process_mean, variance = gp_posterior(process, history.x, y, history.where, candidates.x)
        source_mean = matmul(weights[:-1], predict_means(params, candidates.x))
        return (source_mean + weights[-1] * process_mean) / jnp.sum(weights), variance


def source_weights(sources: SourceProcesses, history: History, bandwidth: float) -> Array:
    """Returns the weights of the past tasks, and of the task at hand, last; f32[sources + 1], not normalised."""
    distances = misranked_share(predict_means(sources, history.x), history.level, history.where)
    return epanechnikov(jnp.append(distances, jnp.zeros((), distances.dtype)) / bandwidth)


@dataclass(frozen=True, kw_only=True)
class TAF(FromSources):
    """Expected improvement on the task at hand, and improvements that past tasks predict, weighted."""

    bandwidth: float = 0.5
    """rho: share of misranked pairs from which a past task has no weight; chosen as for `tst`."""

    def acquire(self, params: SourceProcesses, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the log of the weighted improvements, which distinguishes small improvements late in a run."""
        y = standardise(history.response, history.where).y
        process = fit_gp(self.fitting, history.x, y, history.where)
        weights = source_weights(params, history, self.bandwidth)
        mean, variance = gp_posterior(process, history.x, y, history.where, candidates.x)
        best = best_response(y, history.incumbents)
        log_ei = log_expected_improvement(-mean, jnp.sqrt(variance), jnp.where(jnp.isfinite(best), -best, 0.0))
        source_improvement = matmul(weights[:-1], predicted_improvements(params, history, candidates.x))
        return jnp.logaddexp(jnp.log(weights[-1]) + log_ei, jnp.log(source_improvement)) - jnp.log(jnp.sum(weights))


def predicted_improvements(sources: SourceProcesses, history: History, x: Array) -> Array:
    """Returns I_i(x), f32[sources, m]: the improvement of rows on the best trial, as each past task predicts it.

    Before the first trial, the improvement on the task's mean.
    """
    predictions = predict_means(sources, history.x)
    best = jnp.max(jnp.where(history.where, predictions, -jnp.inf), axis=1)
    best = jnp.where(jnp.isfinite(best), best, 0.0)
    return jnp.maximum(predict_means(sources, x) - best[:, None], 0.0)


ENTRIES = (
    Entry(
        name="tst",
        summary="two-stage transfer surrogate: means of past tasks, weighted by nearness",
        paper="Wistuba, Schilling and Schmidt-Thieme 2016",
        transfer=True,
        default=TST(),
        free=("acquisition", "bandwidth"),
    ),
    Entry(
        name="taf",
        summary="transfer acquisition function: improvements that past tasks predict",
        paper="Wistuba, Schilling and Schmidt-Thieme 2018",
        transfer=True,
        default=TAF(),
        free=("bandwidth",),
    ),
)
