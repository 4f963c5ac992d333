"""BOHAMIANN: a Bayesian neural network, sampled by scale-adapted SG-HMC (Springenberg et al. 2016).

Networks f (three hidden layers of 50, tanh) and a noise variance s^2 are drawn from their posterior given the
standardised history, p(theta | D) ~ p(theta) prod_i N(y_i; f(x_i; theta), s^2), under the prior of `PriorConfig`. With
M of them,

    mu(x) = mean_m f_m(x),        s^2(x) = mean_m [(f_m(x) - mu(x))^2 + s_m^2].

A weight of a layer with n inputs has the prior N(0, s^2 / n); a bias is the weight of one more input, a constant. The
logarithm of the noise variance has the prior N(m, d^2). The chain works on the weights divided by their prior
deviations, so that the prior is the unit Gaussian and all layers have the same scale.

**Chain** (section 4; Chen et al. 2014). One step of the positions theta and momenta v, whose stationary density is
proportional to exp(-U(theta)), is element by element, with the step size h and the friction a,

    v <- (1 - a) v - h V^-1/2 grad U(theta) + N(0, 2 h a V^-1/2),        theta <- theta + v.

V is a running mean of the squared gradient. It adapts during burn-in, over a window that the noise of the gradient
sets, and is fixed afterwards, so that the chain keeps its stationary density:

    w <- w + 1 - w g^2 / V,      g <- g + r (grad U - g),      V <- V + r (grad U^2 - V),      r = 1 / (w + 1).

The paper divides by w, its authors' code by w + 1, so that the first window, of one step, does not forget everything.
The gradient is exact, because it uses the whole history; the correction of the injected noise for batches (h^2) is
therefore zero. The authors' code takes 13,000 steps before every trial (1.6 s of a core at a history of 30), the
default 600 (0.08 s) of length 0.003 instead of 0.01: a history without noise has steep gradients, and with longer steps
the samples spread wider than the posterior.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.checks import AtLeastOne, Checked, NonNegative, Positive
from dre_jax.errors import ConfigError
from dre_jax.methods.baselines.shared import ByResponse, gaussian_nll, mixture_moments
from dre_jax.methods.entries.entry import Entry
from dre_jax.nn.initial import unflatten
from dre_jax.nn.mlp import MLPConfig, MLPParams, apply, shapes, standard_columns
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning


@dataclass(frozen=True, kw_only=True)
class PriorConfig(Checked):
    """Prior of a network. Raises `ConfigError` where a deviation is not positive."""

    weight_deviation: Positive[float] = 2.0
    """s: deviation of a weight, times the root of the layer's inputs."""
    noise: Positive[float] = 1e-3
    """exp(m): median of the prior of the noise variance, for responses of variance one."""
    noise_deviation: Positive[float] = 1.0
    """d: deviation of the logarithm of that variance."""


def n_coordinates(config: MLPConfig, n_columns: int) -> int:
    """Returns P, the number of coordinates of a network."""
    return 1 + sum(math.prod(shape.shape) for shape in shapes(config, n_columns).values())


def network_at(config: MLPConfig, prior: PriorConfig, n_columns: int, z: Array) -> tuple[MLPParams, Array]:
    """Returns the network of coordinates f[P], whose prior is the unit Gaussian, and its log noise variance."""
    params = unflatten(shapes(config, n_columns), z, start=1)
    for name, weights in params.items():
        inputs = params[f"{name.rsplit('_', 1)[0]}_kernel"].shape[0]
        params[name] = (prior.weight_deviation / math.sqrt(inputs)) * weights
    return params, math.log(prior.noise) + prior.noise_deviation * z[0]


def potential(config: MLPConfig, prior: PriorConfig, x: Array, y: Array, where: Array, z: Array) -> Array:
    """Returns the negative log posterior density of coordinates f[P] given a history, up to a constant, a scalar.

    It is half the sum of squared coordinates plus the negative Gaussian log-likelihood.
    """
    params, log_noise = network_at(config, prior, x.shape[-1], z)
    losses = gaussian_nll(apply(config, params, x)[:, 0], y, jnp.exp(log_noise))
    return 0.5 * jnp.sum(z**2) + jnp.sum(jnp.where(where, losses, 0.0))


def predict_networks(config: MLPConfig, prior: PriorConfig, samples: Array, x: Array) -> tuple[Array, Array]:
    """Returns the means f[S, n] at f[n, D], and the noise variances f[S, 1], of sampled networks f[S, P]."""

    def network_outputs(z: Array) -> tuple[Array, Array]:
        params, log_noise = network_at(config, prior, x.shape[-1], z)
        return apply(config, params, x)[:, 0], jnp.exp(log_noise)[None]

    return jax.vmap(network_outputs)(samples)


Gradient = Callable[[Array], Array]
"""Gradient of U: f[P] -> f[P]."""

_LEAST = 1e-16  # of the squared gradient
_NOISE_AT_ONCE = 20  # steps: numbers drawn step by step cost a CPU twice as much as the rest of a step
_MOST = 10.0  # deviations of the gradient that a step follows; where V fits it is a normal number of deviation one


@dataclass(frozen=True, kw_only=True)
class SGHMCConfig(Checked):
    """Length and pace of a chain. Raises `ConfigError` where a number is out of range."""

    burn_in: NonNegative[int]
    """Burn-in steps, which adapt the scales and are discarded."""
    samples: AtLeastOne[int]
    """Number of positions that are kept."""
    keep_every: AtLeastOne[int]
    """Steps between two kept positions."""
    step_size: Positive[float] = 1e-2
    """h: the square of the paper's epsilon."""
    friction: float = 0.05
    """a: share of the momentum that is lost in a step (the paper's epsilon V^-1/2 C)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.friction <= 1:
            raise ConfigError(f"0 < friction <= 1 must hold, but got friction={self.friction}")

    @property
    def steps(self) -> int:
        """All steps of the chain."""
        return self.burn_in + self.samples * self.keep_every


class Scales(NamedTuple):
    """Running statistics of the gradient, f[P] each."""

    window: Array
    """w: number of steps in the window of the means."""
    gradient: Array
    """g: mean gradient."""
    square: Array
    """V: mean squared gradient."""


class Chain(NamedTuple):
    """State of a chain."""

    position: Array
    """f[P]"""
    momentum: Array
    """f[P]"""
    scales: Scales


def start_chain(position: Array) -> Chain:
    """Returns a chain without momentum and with all statistics equal to one."""
    ones = jnp.ones_like(position)
    return Chain(position, jnp.zeros_like(position), Scales(ones, ones, ones))


def adapt_scales(scales: Scales, gradient: Array) -> Scales:
    """Returns the statistics after one more gradient (the paper, equations 8 and 9)."""
    share = 1.0 / (scales.window + 1.0)
    consistent = scales.gradient**2 / jnp.maximum(scales.square, _LEAST)
    return Scales(
        window=scales.window + 1.0 - scales.window * consistent,
        gradient=scales.gradient + share * (gradient - scales.gradient),
        square=scales.square + share * (gradient**2 - scales.square),
    )


def take_step(config: SGHMCConfig, chain: Chain, gradient: Array, noise: Array, *, adapting: bool) -> Chain:
    """Takes one step (the paper, equation 10), given the gradient and unit Gaussian noise, f[P] each."""
    gradient = jnp.where(jnp.isfinite(gradient), gradient, 0.0)
    scales = adapt_scales(chain.scales, gradient) if adapting else chain.scales
    deviation = jnp.sqrt(jnp.maximum(scales.square, _LEAST))
    # After a step that is too long, the chain returns to the stationary density instead of diverging.
    pull = jnp.clip(gradient / deviation, -_MOST, _MOST)
    push = jnp.sqrt(2.0 * config.step_size * config.friction / deviation) * noise
    momentum = (1.0 - config.friction) * chain.momentum - config.step_size * pull + push
    return Chain(chain.position + momentum, momentum, scales)


def run_chain(
    config: SGHMCConfig, gradient_of: Gradient, chain: Chain, key: Array, steps: int, *, adapting: bool
) -> Chain:
    """Runs the chain for a number of steps."""
    shape, dtype = chain.position.shape, chain.position.dtype

    def step(chain: Chain, noise: Array) -> tuple[Chain, None]:
        return take_step(config, chain, gradient_of(chain.position), noise, adapting=adapting), None

    def block(chain: Chain, i: Array | int, size: int) -> Chain:
        noise = jax.random.normal(jax.random.fold_in(key, i), (size, *shape), dtype)
        return lax.scan(step, chain, noise)[0]

    blocks, remainder = divmod(steps, _NOISE_AT_ONCE)
    if blocks:
        chain = lax.fori_loop(0, blocks, lambda i, chain: block(chain, i, _NOISE_AT_ONCE), chain)
    return block(chain, blocks, remainder) if remainder else chain


def sample_chain(config: SGHMCConfig, gradient_of: Gradient, position: Array, key: Array) -> tuple[Array, Chain]:
    """Returns positions f[samples, P] after burn-in of a chain that starts at f[P], and the final chain."""

    def keep_sample(chain: Chain, key: Array) -> tuple[Chain, Array]:
        chain = run_chain(config, gradient_of, chain, key, config.keep_every, adapting=False)
        return chain, chain.position

    burn_key, key = jax.random.split(key)
    chain = run_chain(config, gradient_of, start_chain(position), burn_key, config.burn_in, adapting=True)
    chain, positions = lax.scan(keep_sample, chain, jax.random.split(key, config.samples))
    return positions, chain


_NETWORK = MLPConfig(hidden=(50, 50, 50))
_CHAIN = SGHMCConfig(burn_in=200, samples=40, keep_every=10, step_size=3e-3)


@dataclass(frozen=True, kw_only=True)
class Bohamiann(ByResponse, NoMetaLearning):
    """A Bayesian neural network, sampled anew before every trial."""

    network: MLPConfig = _NETWORK
    """The paper's sizes."""
    prior: PriorConfig = field(default_factory=PriorConfig)
    """Prior of weights and noise."""
    chain: SGHMCConfig = _CHAIN
    """The sampler."""

    def predict(
        self, params: None, history: History, y: Array, candidates: Candidates, key: Array
    ) -> tuple[Array, Array]:
        """Returns the mean and variance of the mixture of sampled networks."""
        samples = self.sample(standard_columns(history.x, history.where), y, history.where, key)

        def predict_rows(rows: Array) -> tuple[Array, Array]:
            return mixture_moments(*predict_networks(self.network, self.prior, samples, standard_columns(rows)))

        return by_blocks(predict_rows, candidates.x)

    def sample(self, x: Array, y: Array, where: Array, key: Array) -> Array:
        """Samples networks f[M, P] given a history: f[n, D] standard columns, f[n] standardised, bool[n]."""
        start_key, chain_key = jax.random.split(key)
        start = jax.random.normal(start_key, (n_coordinates(self.network, x.shape[-1]),), x.dtype)
        gradient_of = jax.grad(partial(potential, self.network, self.prior, x, y, where))
        return sample_chain(self.chain, gradient_of, start, chain_key)[0]


ENTRIES = (
    Entry(
        name="bohamiann",
        summary="Bayesian neural network, sampled by scale-adapted stochastic-gradient HMC",
        paper="Springenberg, Klein, Falkner and Hutter 2016",
        default=Bohamiann(),
    ),
)
