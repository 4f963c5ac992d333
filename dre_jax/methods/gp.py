"""Gaussian process with expected improvement (Snoek, Larochelle and Adams 2012; Jones et al. 1998).

A Matern 5/2 covariance with a length scale for each column, k(x, x') = s m(|x / l - x' / l|), and Gaussian noise. Its
hyperparameters maximise the marginal likelihood of the history before every trial,

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(X, X) + noise I,

times priors that hold them while trials are few. The candidate with the largest expected improvement on the best
response is evaluated next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jax import Array

from dre_jax.methods.entry import Entry
from dre_jax.methods.shared import ByResponse, Untaught
from dre_jax.search.history import Candidates, History
from dre_jax.surrogates import GPConfig, fit_gp, posterior


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(ByResponse, Untaught):
    """A Gaussian process fitted to the history before every trial; it knows nothing of past tasks.

    Example:
      >>> GaussianProcess(fitting=GPConfig(steps=50)).acquisition.kind
      'ei'
    """

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Of the Gaussian process, which is fitted anew."""
        process = fit_gp(self.fitting, history.x, y, history.where)
        return posterior(process, history.x, y, history.where, candidates.x)


ENTRIES = (
    Entry(
        name="gp",
        summary="Gaussian process, Matern 5/2, expected improvement",
        paper="Snoek, Larochelle and Adams 2012",
        default=GaussianProcess(),
    ),
)
