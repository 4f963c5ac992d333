"""Scale-adapted stochastic-gradient Hamiltonian Monte Carlo (Springenberg et al. 2016, section 4; Chen et al. 2014).

A chain of positions theta with momenta v whose stationary density is proportional to exp(-U(theta)). One step, element
by element, with h the step size and a the friction:

    v <- (1 - a) v - h V^-1/2 grad U(theta) + N(0, 2 h a V^-1/2),        theta <- theta + v.

V is a running mean of the squared gradient. It is adapted during burn-in, over a window that the gradient's own noise
sets, and fixed from then on, so that the chain keeps its stationary density:

    w <- w + 1 - w g^2 / V,      g <- g + r (grad U - g),      V <- V + r (grad U^2 - V),      r = 1 / (w + 1).

The paper divides by w where its authors' code has w + 1, so that the first window, of one step, does not forget all.
The gradient of a history is exact. So the share that the paper takes off the injected noise, for what drawing batches
adds (h^2), is zero here. blackjax has the sampler without the adaptation of scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.checks import at_least, positive
from dre_jax.errors import ConfigError

Gradient = Callable[[Array], Array]
"""Gradient of U: f[P] -> f[P]."""

_LEAST = 1e-16  # of the squared gradient
_NOISE_AT_ONCE = 20  # steps: drawn one by one, numbers cost a CPU twice as much as the rest of a step
_MOST = 10.0  # deviations of the gradient that a step follows; where V fits it is a normal number of deviation one


@dataclass(frozen=True, kw_only=True)
class SGHMCConfig:
    """Length and pace of a chain.

    Raises:
      ConfigError: where a number is out of range.
    """

    burn_in: int
    """Steps that adapt scales and are thrown away."""
    samples: int
    """Positions kept."""
    keep_every: int
    """Steps from one to the next."""
    step_size: float = 1e-2
    """h: the square of the paper's epsilon."""
    friction: float = 0.05
    """a: share of the momentum that is lost in a step (the paper's epsilon V^-1/2 C)."""

    def __post_init__(self) -> None:
        at_least(0, self, "burn_in")
        at_least(1, self, "samples", "keep_every")
        positive(self, "step_size")
        if not 0 < self.friction <= 1:
            raise ConfigError(f"0 < friction <= 1 must hold, but got friction={self.friction}")

    @property
    def steps(self) -> int:
        """All steps of the chain."""
        return self.burn_in + self.samples * self.keep_every


class Scales(NamedTuple):
    """Running statistics of the gradient, f[P] each."""

    window: Array
    """w: steps that the means look back."""
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


def start(position: Array) -> Chain:
    """A chain at rest; its statistics are all one."""
    one = jnp.ones_like(position)
    return Chain(position, jnp.zeros_like(position), Scales(one, one, one))


def adapt(scales: Scales, gradient: Array) -> Scales:
    """Statistics after one more gradient (the paper, equations 8 and 9)."""
    share = 1.0 / (scales.window + 1.0)
    consistent = scales.gradient**2 / jnp.maximum(scales.square, _LEAST)
    return Scales(
        window=scales.window + 1.0 - scales.window * consistent,
        gradient=scales.gradient + share * (gradient - scales.gradient),
        square=scales.square + share * (gradient**2 - scales.square),
    )


def step(config: SGHMCConfig, chain: Chain, gradient: Array, noise: Array, *, adapting: bool) -> Chain:
    """One step (the paper, equation 10), with the gradient where the chain is and unit Gaussian noise, f[P] each."""
    gradient = jnp.where(jnp.isfinite(gradient), gradient, 0.0)
    scales = adapt(chain.scales, gradient) if adapting else chain.scales
    deviation = jnp.sqrt(jnp.maximum(scales.square, _LEAST))
    # A chain that a too long step throws out of the stationary density comes back, instead of running off to infinity.
    pull = jnp.clip(gradient / deviation, -_MOST, _MOST)
    push = jnp.sqrt(2.0 * config.step_size * config.friction / deviation) * noise
    momentum = (1.0 - config.friction) * chain.momentum - config.step_size * pull + push
    return Chain(chain.position + momentum, momentum, scales)


def walk(config: SGHMCConfig, gradient_of: Gradient, chain: Chain, key: Array, steps: int, *, adapting: bool) -> Chain:
    """A number of steps."""
    shape, dtype = chain.position.shape, chain.position.dtype

    def one(chain: Chain, noise: Array) -> tuple[Chain, None]:
        return step(config, chain, gradient_of(chain.position), noise, adapting=adapting), None

    def block(chain: Chain, i: Array | int, size: int) -> Chain:
        noise = jax.random.normal(jax.random.fold_in(key, i), (size, *shape), dtype)
        return lax.scan(one, chain, noise)[0]

    whole, rest = divmod(steps, _NOISE_AT_ONCE)
    if whole:
        chain = lax.fori_loop(0, whole, lambda i, chain: block(chain, i, _NOISE_AT_ONCE), chain)
    return block(chain, whole, rest) if rest else chain


def sample(config: SGHMCConfig, gradient_of: Gradient, position: Array, key: Array) -> tuple[Array, Chain]:
    """Positions f[samples, P] of a chain after burn-in, which starts at f[P]; and the chain at its end."""

    def one_sample(chain: Chain, key: Array) -> tuple[Chain, Array]:
        chain = walk(config, gradient_of, chain, key, config.keep_every, adapting=False)
        return chain, chain.position

    burn_key, key = jax.random.split(key)
    chain = walk(config, gradient_of, start(position), burn_key, config.burn_in, adapting=True)
    chain, positions = lax.scan(one_sample, chain, jax.random.split(key, config.samples))
    return positions, chain
