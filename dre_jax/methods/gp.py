"""Gaussian process with expected improvement (Snoek, Larochelle and Adams 2012; Jones et al. 1998).

A Matern 5/2 covariance with a length scale for each column, k(x, x') = s m(|x / l - x' / l|), and Gaussian noise. Its
hyperparameters maximise the marginal likelihood of the history before every trial,

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(X, X) + noise I,

times priors that hold them while trials are few. The candidate with the largest expected improvement on the best
response is evaluated next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.methods.entry import ACQUISITION_OPTION, FITTING_OPTIONS, Entry
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History
from dre_jax.surrogates import GPConfig, best_of, fit_gp, posterior, standardise


@dataclass(frozen=True, kw_only=True)
class GaussianProcess:
    """A Gaussian process fitted to the history before every trial; it knows nothing of past tasks.

    Example:
      >>> GaussianProcess(fitting=GPConfig(steps=50)).acquisition.kind
      'ei'
    """

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    def fit(self, meta: SearchSpace, key: Array) -> None:
        """Nothing to learn."""

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Fits the Gaussian process, and values the candidates by its predictions."""
        y = standardise(history.response, history.where).y
        process = fit_gp(self.fitting, history.x, y, history.where)
        mean, variance = posterior(process, history.x, y, history.where, candidates.x)
        return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), best_of(y, history.where))


ENTRIES = (
    Entry(
        name="gp",
        summary="Gaussian process, Matern 5/2, expected improvement",
        paper="Snoek, Larochelle and Adams 2012",
        default=GaussianProcess(),
        options=FITTING_OPTIONS | ACQUISITION_OPTION,
    ),
)
