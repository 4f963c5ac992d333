"""Gaussian copula process, and Thompson sampling from the copula's prior (Salinas, Shen and Perrone 2020).

Responses of every task become quantiles of a standard Gaussian, z = Phi^-1(F(y)), whatever their scale and noise. A
network learns the past tasks' z | x ~ N(mu(x), sigma^2(x)) by its likelihood (equation 4). On the task at hand

- `gcp-ts` draws z at every candidate from that prior and evaluates the largest; it learns nothing from the trials;
- `gcp` fits a Gaussian process to the residuals of the trials, (z_i - mu(x_i)) / sigma(x_i), and so predicts
  z ~ N(mu(x) + sigma(x) m(x), sigma^2(x) s^2(x)) with its m and s (equations 6 and 7); expected improvement.

The residual Gaussian process has mean zero; that of the authors learns a constant. A constant with a prior N(0, 1)
moved the mean regret on the validation tasks by -0.003 at 10 trials and +0.002 at 25, which is within chance.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import Array

from dre_jax.checks import Checked, Positive
from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import gp_posterior
from dre_jax.gp.response_scale import best_response
from dre_jax.methods.baselines.shared import gaussian_nll
from dre_jax.methods.entries.entry import Entry
from dre_jax.nn import mlp
from dre_jax.nn.mlp import MLPParams
from dre_jax.optim.descent import begin, descend
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT, AcquisitionConfig, acquire_by_response
from dre_jax.search.history import Candidates, History


def cut_off(count: Array) -> Array:
    """Returns 1 / (4 n^(1/4) sqrt(pi log n)), the least distance of a winsorised quantile of n responses to 0 and 1.

    Example:
      >>> float(cut_off(jnp.float32(100.0)).round(4))
      0.0208
    """
    n = jnp.maximum(count, 2.0)
    return 1.0 / (4.0 * n**0.25 * jnp.sqrt(math.pi * jnp.log(n)))


def copula_scale(level: Array, where: Array) -> Array:
    """Returns Phi^-1 of the winsorised share of responses that are at most as high, whatever their scale.

    Levels are i32[n], smaller is better. Returns f[n], equal for equal ones; 0 in empty slots, and where there is one
    response only.
    """
    count = jnp.sum(where, dtype=jnp.float32)
    below = (level[None, :] >= level[:, None]) & where[None, :]
    share = jnp.sum(below, axis=1, dtype=jnp.float32) / jnp.maximum(count, 1.0)
    delta = cut_off(count)
    normal_scores = jax.scipy.special.ndtri(jnp.clip(share, delta, 1.0 - delta))
    return jnp.where(where & (count > 1), normal_scores, 0.0)


def quantiles(y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns `copula_scale` of a table of any length, by sorting."""
    from scipy.special import ndtri
    from scipy.stats import rankdata  # a second to import

    n = len(y)
    if n < 2:
        return np.zeros(n)
    delta = 1.0 / (4.0 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    share = rankdata(y, method="max") / n
    return ndtri(np.clip(share, delta, 1.0 - delta))


_LEAST_VARIANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class QuantileConfig(Checked):
    """Sizes and training of the network (Salinas, Shen and Perrone 2020, section 4.1 and appendix).

    Raises `ConfigError` where a number is out of range.
    """

    hidden: tuple[int, ...] = (50, 50, 50)
    """Hidden layers, ReLU."""
    dropout: float = 0.1
    """Share of the hidden units that is left out in a training step."""
    steps: Positive[int] = 3000
    """Adam steps."""
    batch: Positive[int] = 64
    """Rows of a step."""
    learning_rate: Positive[float] = 0.01
    """Adam's, at the start; it falls to zero along a cosine, where the authors go down in three steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"0 <= dropout < 1 must hold, but got dropout={self.dropout}")

    @property
    def network(self) -> mlp.MLPConfig:
        """The network, whose outputs are the mean, and the variance before the softplus."""
        return mlp.MLPConfig(hidden=self.hidden, activation="relu", outputs=2)


def past_rows(meta: SearchSpace) -> tuple[Array, Array]:
    """Returns the R evaluations of all training tasks, f32[R, D], and their quantiles within the task, f32[R].

    Raises `DataError` without tasks.
    """
    tasks = meta.require_train_tasks().values()
    xs = [np.asarray(task.X, np.float32) for task in tasks]
    zs = [quantiles(task.y).astype(np.float32) for task in tasks]
    return jax.device_put((np.concatenate(xs), np.concatenate(zs)))


def moments(config: QuantileConfig, params: mlp.MLPParams, x: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of z at any number of rows; f32[m, D] -> two f32[m]."""
    return by_blocks(lambda rows: _split(mlp.apply(config.network, params, mlp.standard_columns(rows))), x)


def _split(outputs: Array) -> tuple[Array, Array]:
    return outputs[:, 0], jax.nn.softplus(outputs[:, 1]) + _LEAST_VARIANCE


@partial(jax.jit, static_argnames="config")
def train_quantile_net(config: QuantileConfig, x: Array, z: Array, key: Array) -> tuple[mlp.MLPParams, Array]:
    """Maximises the Gaussian likelihood of z (equation 4); returns parameters and the losses of steps, f32[steps]."""
    start_key, step_key = jax.random.split(key)

    def loss(params: mlp.MLPParams, number: Array) -> Array:
        row_key, dropout_key = jax.random.split(jax.random.fold_in(step_key, number))
        sample = jax.random.randint(row_key, (config.batch,), 0, z.shape[0])
        inputs = mlp.standard_columns(x[sample])
        outputs = mlp.apply(config.network, params, inputs, dropout=config.dropout, key=dropout_key)
        mean, variance = _split(outputs)
        return jnp.mean(gaussian_nll(mean, z[sample], variance))

    start = mlp.init(config.network, x.shape[1], start_key)
    rates = optax.cosine_decay_schedule(config.learning_rate, config.steps)
    numbers = jnp.arange(config.steps)
    descent, losses = descend(loss, begin(start), rates, numbers, numbers)
    return descent.params, losses


@dataclass(frozen=True, kw_only=True)
class _FromQuantiles:
    """A method whose prior is a network of the past tasks' quantiles."""

    prior: QuantileConfig = field(default_factory=QuantileConfig)
    """The network and its training."""

    def abstract_params(self, n_columns: int) -> MLPParams:
        """Returns the shapes of the network."""
        return jax.eval_shape(partial(mlp.init, self.prior.network, n_columns), jax.random.key(0))

    def fit(self, meta: SearchSpace, key: Array) -> MLPParams:
        """Trains the network on all evaluations of the training tasks."""
        return train_quantile_net(self.prior, *past_rows(meta), key)[0]


@dataclass(frozen=True, kw_only=True)
class GaussianCopulaProcess(_FromQuantiles):
    """A Gaussian process of the trials' residuals from a prior of past tasks."""

    fitting: GPConfig = field(default_factory=lambda: GPConfig(density_of="logarithm"))
    """Search for the residual Gaussian process' hyperparameters."""
    acquisition: AcquisitionConfig = EXPECTED_IMPROVEMENT
    """Acquisition function."""

    def acquire(self, params: MLPParams, history: History, candidates: Candidates, key: Array) -> Array:
        """Fits the Gaussian process of residuals, and values the candidates by it and the prior together."""
        z = copula_scale(history.level, history.where)
        mean, variance = moments(self.prior, params, history.x)
        residual = jnp.where(history.where, (z - mean) / jnp.sqrt(variance), 0.0)
        process = fit_gp(self.fitting, history.x, residual, history.where)
        residual_mean, residual_variance = gp_posterior(process, history.x, residual, history.where, candidates.x)
        prior_mean, prior_variance = moments(self.prior, params, candidates.x)
        deviation = jnp.sqrt(prior_variance)
        return acquire_by_response(
            self.acquisition,
            prior_mean + deviation * residual_mean,
            deviation * jnp.sqrt(residual_variance),
            best_response(z, history.incumbents),
        )


@dataclass(frozen=True, kw_only=True)
class CopulaThompsonSampling(_FromQuantiles):
    """Draws from the predictions of past tasks."""

    def acquire(self, params: MLPParams, history: History, candidates: Candidates, key: Array) -> Array:
        """Samples z at every candidate."""
        mean, variance = moments(self.prior, params, candidates.x)
        return mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape, mean.dtype)


ENTRIES = (
    Entry(
        name="gcp",
        summary="Gaussian copula process: past tasks' quantiles as the prior of a Gaussian process",
        paper="Salinas, Shen and Perrone 2020",
        transfer=True,
        default=GaussianCopulaProcess(),
        free=("fitting", "acquisition"),
    ),
    Entry(
        name="gcp-ts",
        summary="Thompson sampling from the copula's prior alone",
        paper="Salinas, Shen and Perrone 2020",
        transfer=True,
        default=CopulaThompsonSampling(),
    ),
)
