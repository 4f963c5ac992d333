"""Two-stage transfer surrogate with ranking meta-features (Wistuba, Schilling and Schmidt-Thieme 2016).

First stage: a Gaussian process of each past task, and one of the task at hand. Second stage: the mean is theirs,
weighted by how near the tasks are,

    mu(x) = sum_i w_i mu_i(x) / sum_i w_i,     w_i = K(d_i / rho),     K(t) = 3/4 (1 - t^2) for t <= 1, else 0

(equations 8 and 9), where d_i is the share of pairs of trials that mu_i puts in the wrong order (equation 11). The task
at hand has distance 0, so its weight is never zero, and the deviation is that of its own Gaussian process.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.fit import fit_gp
from dre_jax.gp.kernels import epanechnikov
from dre_jax.gp.regression import gp_posterior, matmul
from dre_jax.methods.baselines.discordance import misranked
from dre_jax.methods.baselines.shared import ByResponse, FromSources
from dre_jax.methods.baselines.sources import SourceProcesses, predict_means
from dre_jax.methods.entry import Entry
from dre_jax.search.history import Candidates, History


@dataclass(frozen=True, kw_only=True)
class TST(FromSources, ByResponse):
    """Means of past tasks' Gaussian processes, weighted by how alike they rank the trials.

    Example:
      >>> TST(bandwidth=0.2).rows
      100
    """

    bandwidth: float = 0.35
    """rho: share of misranked pairs from which on a past task has no weight; chosen on validation tasks, where the
    best of 0.1, 0.2, 0.35, 0.5 and 1 differed for `tst` and `taf`."""

    def predict(
        self, params: SourceProcesses, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """The weighted means of all Gaussian processes, and the variance of the task's own."""
        own = fit_gp(self.fitting, history.x, y, history.where)
        weights = source_weights(params, history, self.bandwidth)
        own_mean, variance = gp_posterior(own, history.x, y, history.where, candidates.x)
        transferred = matmul(weights[:-1], predict_means(params, candidates.x))
        return (transferred + weights[-1] * own_mean) / jnp.sum(weights), variance


def source_weights(sources: SourceProcesses, history: History, bandwidth: float) -> Array:
    """Weights of the past tasks, and of the task at hand, last; f32[sources + 1], not normalised."""
    distances = misranked(predict_means(sources, history.x), history.level, history.where)
    return epanechnikov(jnp.append(distances, jnp.zeros((), distances.dtype)) / bandwidth)


ENTRIES = (
    Entry(
        name="tst",
        summary="two-stage transfer surrogate: means of past tasks, weighted by nearness",
        paper="Wistuba, Schilling and Schmidt-Thieme 2016",
        transfer=True,
        default=TST(),
        free=("acquisition", "bandwidth"),
    ),
)
