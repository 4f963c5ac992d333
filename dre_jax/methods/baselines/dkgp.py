"""Deep-kernel Gaussian process (Wilson et al. 2016), fitted to the task at hand alone.

A network and a kernel on its features, k(phi(x), phi(x')), are fitted together from random weights before every trial,
by the marginal likelihood of the history (their equations 5 to 7),

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(phi(X), phi(X)) + noise I.

The candidate with the largest expected improvement is evaluated next. The HPO-B benchmark's DGP is this method, with up
to 10,000 steps at a rate of 0.001 and a stop when the likelihood no longer changes; see `DeepKernelGP.tuning`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jax import Array

from dre_jax.methods.baselines.deep_kernel import DeepKernelConfig, deep_kernel_posterior, init, tune
from dre_jax.methods.baselines.shared import ByResponse, Untaught
from dre_jax.methods.entry import Entry
from dre_jax.optim.full_batch import HistoryFitConfig
from dre_jax.search.history import Candidates, History

_TUNING = HistoryFitConfig(steps=200, learning_rate=0.01)


@dataclass(frozen=True, kw_only=True)
class DeepKernelGP(ByResponse, Untaught):
    """A deep kernel from random weights before every trial; it knows nothing of past tasks.

    Example:
      >>> DeepKernelGP().model.layers
      (32, 32, 32, 32)
    """

    model: DeepKernelConfig = field(default_factory=DeepKernelConfig)
    """Sizes; the default is that of HPO-B's DGP."""
    tuning: HistoryFitConfig = _TUNING
    """Fitting, before every trial."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Of the Gaussian process, which is fitted anew."""
        start = init(self.model, history.x.shape[-1], key)
        process = tune(self.tuning, self.model, start, history.x, y, history.where)
        return deep_kernel_posterior(self.model, process, history.x, y, history.where, candidates.x)


ENTRIES = (
    Entry(
        name="dkgp",
        summary="Gaussian process on features of a network, both fitted to the task before every trial",
        paper="Wilson, Hu, Salakhutdinov and Xing 2016",
        default=DeepKernelGP(),
    ),
)
