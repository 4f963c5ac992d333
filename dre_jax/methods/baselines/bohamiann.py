"""BOHAMIANN: a Bayesian neural network, sampled by scale-adapted SG-HMC (Springenberg et al. 2016).

Networks f (three hidden layers of 50, tanh) and a noise variance s^2 are drawn from their posterior given the
standardised history, p(theta | D) ~ p(theta) prod_i N(y_i; f(x_i; theta), s^2), by the chain of
`dre_jax.methods.baselines.sghmc`, under the prior of `PriorConfig`. With M of them,

    mu(x) = mean_m f_m(x),        s^2(x) = mean_m [(f_m(x) - mu(x))^2 + s_m^2].

The authors' code takes 13,000 steps before every trial, 1.6 s of a core at a history of 30; the default's 600 take
0.08 s. Its steps are shorter than theirs, by 0.003 in place of 0.01: the gradients of a history without noise are
steep, and longer steps spread the samples wider than the posterior is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import jax
from jax import Array

from dre_jax.methods.baselines.bayesian_network import PriorConfig, n_coordinates, potential, predictions
from dre_jax.methods.baselines.mixture import mixture_moments
from dre_jax.methods.baselines.sghmc import SGHMCConfig, sample
from dre_jax.methods.baselines.shared import ByResponse, Untaught
from dre_jax.methods.entry import Entry
from dre_jax.nn.mlp import MLPConfig, standard_columns
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History

PAPER_CHAIN = SGHMCConfig(burn_in=3000, samples=100, keep_every=100)
"""The length that the authors' code has: 13,000 steps before every trial."""

_NETWORK = MLPConfig(hidden=(50, 50, 50))
_CHAIN = SGHMCConfig(burn_in=200, samples=40, keep_every=10, step_size=3e-3)


@dataclass(frozen=True, kw_only=True)
class Bohamiann(ByResponse, Untaught):
    """A Bayesian neural network, sampled anew before every trial.

    Example:
      >>> Bohamiann(chain=PAPER_CHAIN).chain.steps
      13000
    """

    network: MLPConfig = _NETWORK
    """The paper's sizes."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """Prior of weights and noise."""
    chain: SGHMCConfig = _CHAIN
    """The sampler."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """The moments of sampled networks."""
        samples = self.sample(standard_columns(history.x, history.where), y, history.where, key)

        def at(rows: Array) -> tuple[Array, Array]:
            return mixture_moments(*predictions(self.network, self.prior, samples, standard_columns(rows)))

        mean, variance = by_blocks(at, candidates.x)
        return mean, variance

    def sample(self, x: Array, y: Array, where: Array, key: Array) -> Array:
        """Networks f[M, P] given a history; f[n, D] standard columns, f[n] standardised, bool[n]."""
        start_key, chain_key = jax.random.split(key)
        start = jax.random.normal(start_key, (n_coordinates(self.network, x.shape[-1]),), x.dtype)
        gradient_of = jax.grad(partial(potential, self.network, self.prior, x, y, where))
        return sample(self.chain, gradient_of, start, chain_key)[0]


ENTRIES = (
    Entry(
        name="bohamiann",
        summary="Bayesian neural network, sampled by scale-adapted stochastic-gradient HMC",
        paper="Springenberg, Klein, Falkner and Hutter 2016",
        default=Bohamiann(),
    ),
)
