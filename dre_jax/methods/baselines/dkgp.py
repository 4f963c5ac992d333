"""Deep-kernel Gaussian process (Wilson et al. 2016) that is fitted to the new task alone.

A network and a kernel on its features, k(phi(x), phi(x')), are fitted together from random weights before every trial,
by the marginal likelihood of the history (their equations 5 to 7),

    log p(y | X) = - y' K^-1 y / 2 - log |K| / 2 - n log(2 pi) / 2,     K = k(phi(X), phi(X)) + noise I.

The candidate with the largest expected improvement is evaluated next. HPO-B's DGP is this method with up to 10,000
steps at a rate of 0.001, until the likelihood no longer changes; see `DeepKernelGP.tuning`. `fsbo` learns the same
kernel from past tasks, with landmarks also from a deep set of the observations (Jomaa et al. 2021).
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import AnyLayers, Checked, Layers
from dre_jax.gp.kernels import Kernel, correlation, squared_distances_by_products
from dre_jax.gp.regression import add_noise, condition_gp, log_gaussian_density, predict_signal, prepare_gp
from dre_jax.methods.baselines.shared import ByResponse
from dre_jax.methods.dre.model.ensemble import Support, scale_response
from dre_jax.methods.entries.entry import Entry
from dre_jax.nn import mlp, networks
from dre_jax.nn.initial import draw
from dre_jax.optim.descent import maximise
from dre_jax.optim.full_batch import HistoryFitConfig
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning

_LENGTHS = (math.log(1e-2), math.log(1e2))
_SCALES = (math.log(1e-3), math.log(1e3))
_NOISES = (math.log(1e-4), 0.0)  # as a share of the signal; float32 cannot resolve less
_FIRST_NOISE = math.log(1e-2)


@dataclass(frozen=True, kw_only=True)
class DeepKernelConfig(Checked):
    """Sizes of the network and of the deep set.

    Raises `ConfigError` where a size is not positive, or the kernel is unknown.
    """

    layers: Layers = (32, 32, 32, 32)
    """Outputs of the network's layers; the last are the features."""
    phi: Layers = (32, 32, 32)
    """Layers of the deep set before the mean."""
    rho: AnyLayers = ()
    """Layers of the deep set after the mean; the last is as wide as the landmark features. Empty for no deep set."""
    kernel: Kernel = "matern52"
    """Correlation of features."""

    @property
    def has_landmarks(self) -> bool:
        """Returns whether there is a deep set."""
        return bool(self.rho)

    @property
    def network(self) -> mlp.MLPConfig:
        """The network; its outputs are the features."""
        return mlp.MLPConfig(hidden=self.layers[:-1], activation="relu", outputs=self.layers[-1])

    @property
    def deep_set(self) -> networks.DeepSet:
        """The deep set; its output is the context."""
        return networks.DeepSet(self.phi, self.rho)


class DeepKernel(NamedTuple):
    """Parameters of a Gaussian process on learned features."""

    network: mlp.MLPParams
    deep_set: Any
    """A deep set's tree; None without landmarks."""
    mean: Array
    """Scalar: the mean of the Gaussian process, everywhere."""
    log_length: Array
    """Scalar: length scale of all features."""
    log_scale: Array
    """Scalar: variance of the signal."""
    log_noise: Array
    """Scalar: variance of the noise, as a share of the signal's."""


def init(config: DeepKernelConfig, n_columns: int, key: Array) -> DeepKernel:
    """Returns a Gaussian process on the features of random networks of D columns, for standardised responses.

    A feature differs about as much between configurations as a column does (He et al. 2015).
    """
    network_key, set_key = jax.random.split(key)
    deep_set = None
    if config.has_landmarks:
        deep_set = draw(networks.deep_set_shapes(config.deep_set, n_columns), "lecun_normal", set_key)
    n_inputs = n_columns + (config.rho[-1] if config.has_landmarks else 0)
    network = mlp.init_features(config.network, n_inputs, network_key)
    zero = jnp.zeros((), network["out_kernel"].dtype)
    return DeepKernel(network, deep_set, zero, zero, zero, zero + _FIRST_NOISE)


def clip_deep_kernel(params: DeepKernel) -> DeepKernel:
    """Returns the parameters with hyperparameters clipped to bounds, so that covariances can be factorised."""
    return params._replace(
        log_length=jnp.clip(params.log_length, *_LENGTHS),
        log_scale=jnp.clip(params.log_scale, *_SCALES),
        log_noise=jnp.clip(params.log_noise, *_NOISES),
    )


def features(config: DeepKernelConfig, params: DeepKernel, support: Support, x: Array) -> Array:
    """Returns features divided by their length scale; f[n, D] -> f[n, F]. The support is the input of the deep set."""
    context = None
    if config.has_landmarks:
        response = scale_response(support.response, support.where)
        context = networks.apply(config.deep_set, params.deep_set, support.x, response, support.where)
    return mlp.apply(config.network, params.network, x, context) * jnp.exp(-params.log_length)


def _correlation(config: DeepKernelConfig, a: Array, b: Array) -> Array:
    """Returns the correlation of features; f[n, F] and f[m, F] -> f[n, m]."""
    return correlation(config.kernel, squared_distances_by_products(a, b))


def _observation_covariance(config: DeepKernelConfig, params: DeepKernel, z: Array, where: Array) -> Array:
    """Returns the covariance of observations at features z, for a signal of unit variance; f[n, F] -> f[n, n]."""
    return add_noise(_correlation(config, z, z), jnp.exp(params.log_noise), where)


def log_likelihood(
    config: DeepKernelConfig, params: DeepKernel, support: Support, x: Array, y: Array, where: Array
) -> Array:
    """Returns the log-likelihood of a history. The support is the input of the deep set; it may be the history."""
    z = features(config, params, support, x)
    scale = jnp.exp(params.log_scale)
    # The matrix does not contain the scale: log N(y | 0, s A) = log N(y / sqrt(s) | 0, A) - n log(s) / 2.
    residuals = jnp.where(where, (y - params.mean) * jax.lax.rsqrt(scale), 0.0)
    count = jnp.sum(where, dtype=y.dtype)
    return (
        log_gaussian_density(_observation_covariance(config, params, z, where), residuals, where)
        - 0.5 * count * params.log_scale
    )


def tune(
    tuning: HistoryFitConfig, config: DeepKernelConfig, params: DeepKernel, x: Array, y: Array, where: Array
) -> DeepKernel:
    """Returns the parameters of the highest likelihood that Adam evaluates; empty slots have no effect.

    The number of steps includes the initial parameters: 0 and 1 step return them.
    """
    x, y = jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0)
    support = Support(x, y, where)
    return maximise(
        lambda params: log_likelihood(config, params, support, x, y, where),
        params,
        steps=tuning.steps,
        learning_rate=tuning.learning_rate,
        project=clip_deep_kernel,
    )[0]


def deep_kernel_posterior(
    config: DeepKernelConfig, params: DeepKernel, x: Array, y: Array, where: Array, new: Array
) -> tuple[Array, Array]:
    """Returns the posterior mean and variance of the signal at any number of points f[m, D], two f[m]."""
    x, y = jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0)
    support = Support(x, y, where)
    z = features(config, params, support, x)
    prepared_gp = prepare_gp(
        condition_gp(_observation_covariance(config, params, z, where), jnp.where(where, y - params.mean, 0.0), where)
    )

    def predict_rows(rows: Array) -> tuple[Array, Array]:
        cross = _correlation(config, z, features(config, params, support, rows))
        return predict_signal(prepared_gp, cross, jnp.ones(rows.shape[:1], y.dtype))

    mean, variance = by_blocks(predict_rows, new)
    return params.mean + mean, jnp.exp(params.log_scale) * variance


_TUNING = HistoryFitConfig(steps=200, learning_rate=0.01)


@dataclass(frozen=True, kw_only=True)
class DeepKernelGP(ByResponse, NoMetaLearning):
    """A deep kernel fitted from random weights before every trial, without past tasks."""

    model: DeepKernelConfig = field(default_factory=DeepKernelConfig)
    """Sizes of the network; by default those of HPO-B's DGP."""
    tuning: HistoryFitConfig = _TUNING
    """Fitting, before every trial."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the Gaussian process, which is fitted to the history."""
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
