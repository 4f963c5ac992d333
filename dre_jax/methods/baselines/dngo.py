"""DNGO: Bayesian linear regression on a basis that a network learns (Snoek et al. 2015).

A perceptron (three hidden layers of 50, tanh) is trained by Adam on the squared error of the standardised history.
Then its last layer is replaced by the posterior over such layers. With phi(x) the outputs of the last hidden layer and
a constant, Phi those of the history,

    K = beta Phi' Phi + alpha I,    m = beta K^-1 Phi' y,

    mu(x) = m' phi(x),    s^2(x) = phi(x)' K^-1 phi(x) + 1 / beta.

The paper draws alpha and beta by slice sampling and averages. Here they maximise the evidence times priors, which needs
no chain before every trial. The paper's quadratic mean function, which assumes an optimum in the middle of the space,
is left out as in its authors' and others' code: the mean is that of the responses.

The last layer is Bayesian linear regression on features (Bishop 2006, section 3.3): y = phi' w + noise with
w ~ N(0, I / alpha) and noise ~ N(0, 1 / beta) is a Gaussian process with the covariance phi' phi / alpha. The functions
of `dre_jax.gp` compute it on matrices of the size of the history. In exact arithmetic the result equals that of the
posterior of the weights. A history has features f[n, F] in place of columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from dre_jax.gp.regression import add_noise, condition_gp, log_gaussian_density, matmul, predict_signal, prepare_gp
from dre_jax.methods.baselines.shared import ByResponse
from dre_jax.methods.entries.entry import Entry
from dre_jax.nn.mlp import MLPConfig, MLPParams, apply, features, init, standard_columns
from dre_jax.optim.descent import maximise
from dre_jax.optim.full_batch import FullBatchConfig, train_full_batch
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning


class LinearParams(NamedTuple):
    """Logarithms of the two precisions."""

    log_alpha: Array
    """Scalar: precision of the weights."""
    log_beta: Array
    """Scalar: precision of the noise."""


_LOG_ALPHAS = (-7.0, 12.0)
_LOG_BETAS = (-3.0, 10.0)
_STEPS, _LEARNING_RATE = 50, 0.3
# Features that were trained on the same responses overfit them, and the evidence is overconfident. The priors are
# therefore narrow: with wide ones (4 and 3) the search stops exploring.
_PRIOR_LOG_BETA = 2.0
_PRIOR_DEVIATION = 0.3


def linear_covariance(params: LinearParams, a: Array, b: Array) -> Array:
    """Returns the covariance of phi' w; f[n, F] and f[m, F] -> f[n, m]."""
    return matmul(a, b.T) * jnp.exp(-params.log_alpha)


def linear_log_evidence(params: LinearParams, features: Array, y: Array, where: Array) -> Array:
    """Returns the log marginal likelihood of a history with features f[n, F] (Bishop, equation 3.86)."""
    return log_gaussian_density(
        add_noise(linear_covariance(params, features, features), jnp.exp(-params.log_beta), where), y, where
    )


def fit_linear(features: Array, y: Array, where: Array) -> LinearParams:
    """Returns the precisions of the highest posterior density."""
    # At the prior mean, the signal has the variance of the responses, which is one.
    count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)
    size = jnp.sum(jnp.where(where[:, None], features, 0.0) ** 2) / count
    prior_mean = LinearParams(jnp.log(jnp.maximum(size, 1e-3)), jnp.full((), _PRIOR_LOG_BETA, y.dtype))

    def objective(params: LinearParams) -> Array:
        squares = (params.log_alpha - prior_mean.log_alpha) ** 2 + (params.log_beta - prior_mean.log_beta) ** 2
        return linear_log_evidence(params, features, y, where) - 0.5 * squares / _PRIOR_DEVIATION**2

    def project(params: LinearParams) -> LinearParams:
        return LinearParams(jnp.clip(params.log_alpha, *_LOG_ALPHAS), jnp.clip(params.log_beta, *_LOG_BETAS))

    start = project(prior_mean)
    return maximise(objective, start, steps=_STEPS, learning_rate=_LEARNING_RATE, project=project)[0]


def linear_posterior(
    params: LinearParams, features: Array, y: Array, where: Array
) -> Callable[[Array], tuple[Array, Array]]:
    """Returns the function that maps f[m, F] to the mean and variance of phi' w given a history, two f[m].

    Bishop, equations 3.58 and 3.59 less the noise.
    """
    matrix = add_noise(linear_covariance(params, features, features), jnp.exp(-params.log_beta), where)
    prepared_gp = prepare_gp(condition_gp(matrix, y, where))

    def predict(new: Array) -> tuple[Array, Array]:
        prior = jnp.sum(new**2, axis=-1) * jnp.exp(-params.log_alpha)
        return predict_signal(prepared_gp, linear_covariance(params, features, new), prior)

    return predict


_NETWORK = MLPConfig(hidden=(50, 50, 50))
_FITTING = FullBatchConfig(steps=500, learning_rate=0.01)


@dataclass(frozen=True, kw_only=True)
class DNGO(ByResponse, NoMetaLearning):
    """A network and a Bayesian last layer, fitted to the history before every trial."""

    network: MLPConfig = _NETWORK
    """The paper's sizes."""
    fitting: FullBatchConfig = _FITTING
    """Training of the network."""
    weight_decay: float = 1e-4
    """Share of the squared weights in the loss."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the last layer's posterior, on the basis of a trained network."""
        x, where = standard_columns(history.x, history.where), history.where
        network_params = self.train(x, y, where, key)
        basis = with_constant(features(self.network, network_params, x))
        last_layer = fit_linear(basis, y, where)
        predict = linear_posterior(last_layer, basis, y, where)

        def predict_rows(rows: Array) -> tuple[Array, Array]:
            return predict(with_constant(features(self.network, network_params, standard_columns(rows))))

        mean, variance = by_blocks(predict_rows, candidates.x)
        return mean, variance + jnp.exp(-last_layer.log_beta)

    def train(self, x: Array, y: Array, where: Array, key: Array) -> MLPParams:
        """Returns a network trained on a history: f[n, D] standard columns, f[n] standardised, bool[n]."""
        count = jnp.maximum(jnp.sum(where, dtype=y.dtype), 1.0)

        def loss(params: MLPParams) -> Array:
            error = jnp.where(where, apply(self.network, params, x)[:, 0] - y, 0.0)
            size = sum(jnp.sum(value**2) for name, value in params.items() if name.endswith("_kernel"))
            return jnp.sum(error**2) / count + self.weight_decay * size

        return train_full_batch(self.fitting, loss, init(self.network, x.shape[-1], key))


def with_constant(basis: Array) -> Array:
    """Returns a basis with a column of ones as its last column; f[n, F] -> f[n, F + 1]."""
    return jnp.concatenate([basis, jnp.ones((basis.shape[0], 1), basis.dtype)], axis=1)


ENTRIES = (
    Entry(
        name="dngo",
        summary="Bayesian linear regression on a basis that a network learns",
        paper="Snoek et al. 2015",
        default=DNGO(),
    ),
)
