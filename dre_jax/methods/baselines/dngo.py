"""DNGO: Bayesian linear regression on a basis that a network learns (Snoek et al. 2015).

A perceptron (three hidden layers of 50, tanh) is trained by Adam on the squared error of the standardised history.
Then its last layer is replaced by the posterior over such layers. With phi(x) the outputs of the last hidden layer and
a constant, Phi those of the history,

    K = beta Phi' Phi + alpha I,    m = beta K^-1 Phi' y,

    mu(x) = m' phi(x),    s^2(x) = phi(x)' K^-1 phi(x) + 1 / beta.

The paper draws alpha and beta by slice sampling and averages; here they are the two of the highest evidence times
priors, which needs no chain before every trial. The paper's quadratic mean function, which assumes an optimum in the
middle of the space, is left out as in its authors' and others' code: the mean is that of the responses.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.methods.baselines.linear import condition_linear, fit_linear, predict_linear
from dre_jax.methods.baselines.shared import ByResponse, Untaught
from dre_jax.methods.entry import Entry
from dre_jax.nn.mlp import MLPConfig, MLPParams, apply, features, init, standard_columns
from dre_jax.optim.full_batch import FullBatchConfig, train_full_batch
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History

_NETWORK = MLPConfig(hidden=(50, 50, 50))
_FITTING = FullBatchConfig(steps=500, learning_rate=0.01)


@dataclass(frozen=True, kw_only=True)
class DNGO(ByResponse, Untaught):
    """A network and a Bayesian last layer, fitted to the history before every trial.

    Example:
      >>> DNGO().network.hidden
      (50, 50, 50)
    """

    network: MLPConfig = _NETWORK
    """The paper's sizes."""
    fitting: FullBatchConfig = _FITTING
    """Training of the network."""
    weight_decay: float = 1e-4
    """Share of the squared weights in the loss."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Of network and last layer, which are trained anew."""
        x, where = standard_columns(history.x, history.where), history.where
        trained = self.train(x, y, where, key)
        basis = with_constant(features(self.network, trained, x))
        posterior = condition_linear(fit_linear(basis, y, where), basis, y, where)

        def at(rows: Array) -> tuple[Array, Array]:
            return predict_linear(posterior, with_constant(features(self.network, trained, standard_columns(rows))))

        mean, variance = by_blocks(at, candidates.x)
        return mean, variance + jnp.exp(-posterior.params.log_beta)

    def train(self, x: Array, y: Array, where: Array, key: Array) -> MLPParams:
        """The network after training on a history; f[n, D] standard columns, f[n] standardised, bool[n]."""
        count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)

        def loss(params: MLPParams) -> Array:
            error = jnp.where(where, apply(self.network, params, x)[:, 0] - y, 0.0)
            size = sum(jnp.sum(value**2) for name, value in params.items() if name.endswith("_kernel"))
            return jnp.sum(error**2) / count + self.weight_decay * size

        return train_full_batch(self.fitting, loss, init(self.network, x.shape[-1], key))


def with_constant(basis: Array) -> Array:
    """A column of ones behind the others; f[n, F] -> f[n, F + 1]."""
    return jnp.concatenate([basis, jnp.ones((basis.shape[0], 1), basis.dtype)], axis=1)


ENTRIES = (
    Entry(
        name="dngo",
        summary="Bayesian linear regression on a basis that a network learns",
        paper="Snoek et al. 2015",
        default=DNGO(),
    ),
)
