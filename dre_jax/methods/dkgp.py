"""Deep-kernel Gaussian process (Wilson et al. 2016), fitted to the task at hand alone.

A network and a kernel on its features, k(phi(x), phi(x')), are fitted together from random weights before every trial,
by the marginal likelihood of the history (their equations 5 to 7),

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(phi(X), phi(X)) + noise I.

The candidate with the largest expected improvement is evaluated next. The HPO-B benchmark's DGP is this method, with up
to 10,000 steps at a rate of 0.001 and a stop when the likelihood no longer changes; see `DeepKernelGP.tuning`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.methods.entry import ACQUISITION_OPTION, TUNING_OPTIONS, Entry
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History
from dre_jax.surrogates import best_of, standardise
from dre_jax.surrogates.deep_kernel import DeepKernelConfig, TuningConfig, init, posterior, tune

_TUNING = TuningConfig(steps=200, learning_rate=0.01)


@dataclass(frozen=True, kw_only=True)
class DeepKernelGP:
    """A deep kernel from random weights before every trial; it knows nothing of past tasks.

    Example:
      >>> DeepKernelGP().model.layers
      (32, 32, 32, 32)
    """

    model: DeepKernelConfig = field(default_factory=DeepKernelConfig)
    """Sizes; the default is that of HPO-B's DGP."""
    tuning: TuningConfig = _TUNING
    """Fitting, before every trial."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    def fit(self, meta: SearchSpace, key: Array) -> None:
        """Nothing to learn."""

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Fits the Gaussian process, and values the candidates by its predictions."""
        y = standardise(history.response, history.where).y
        start = init(self.model, history.x.shape[-1], key)
        process = tune(self.tuning, self.model, start, history.x, y, history.where)
        mean, variance = posterior(self.model, process, history.x, y, history.where, candidates.x)
        return acquire_by_response(self.acquisition, mean, jnp.sqrt(variance), best_of(y, history.where))


ENTRIES = (
    Entry(
        name="dkgp",
        summary="Gaussian process on features of a network, both fitted to the task before every trial",
        paper="Wilson, Hu, Salakhutdinov and Xing 2016",
        default=DeepKernelGP(),
        options=TUNING_OPTIONS | ACQUISITION_OPTION,
    ),
)
