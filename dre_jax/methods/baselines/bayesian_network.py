"""A Bayesian neural network: its posterior density, in coordinates in which the prior is the unit Gaussian.

A weight of a layer with n inputs has the prior N(0, s^2 / n); a bias is the weight of one more input, a constant. The
logarithm of the noise's variance, equal for all inputs, has the prior N(m, d^2). A sampler works on the weights over
their prior deviations: those of wide and of narrow layers are then of one scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import positive
from dre_jax.losses.regression import gaussian_nll_of
from dre_jax.nn.mlp import MLPConfig, MLPParams, apply, shapes


@dataclass(frozen=True, kw_only=True)
class PriorConfig:
    """Prior of a network.

    Raises:
      ConfigError: where a deviation is not positive.
    """

    weight_deviation: float = 2.0
    """s: of a weight, times the root of the layer's inputs."""
    noise: float = 1e-3
    """exp(m): the noise's variance in the middle of its prior, of responses whose variance is one."""
    noise_deviation: float = 1.0
    """d: of the logarithm of that variance."""

    def __post_init__(self) -> None:
        positive(self, "weight_deviation", "noise", "noise_deviation")


class Network(NamedTuple):
    """A network with its noise."""

    params: MLPParams
    log_noise: Array
    """Scalar: logarithm of the noise's variance."""


def n_coordinates(config: MLPConfig, n_columns: int) -> int:
    """Numbers that make up a network: P."""
    return 1 + sum(math.prod(shape.shape) for shape in shapes(config, n_columns).values())


def network_at(config: MLPConfig, prior: PriorConfig, n_columns: int, z: Array) -> Network:
    """The network of coordinates f[P], of which the prior is the unit Gaussian."""
    layout: dict[str, Any] = shapes(config, n_columns)
    params, first = {}, 1
    for name in sorted(layout):
        shape = layout[name].shape
        inputs = layout[f"{name.rsplit('_', 1)[0]}_kernel"].shape[0]
        size = math.prod(shape)
        params[name] = (prior.weight_deviation / math.sqrt(inputs)) * z[first : first + size].reshape(shape)
        first += size
    return Network(params, math.log(prior.noise) + prior.noise_deviation * z[0])


def potential(config: MLPConfig, prior: PriorConfig, x: Array, y: Array, where: Array, z: Array) -> Array:
    """Minus the logarithm of the posterior density given a history, up to a constant; coordinates f[P] -> scalar.

    Half the squares of the coordinates, plus the Gaussian likelihood's negative logarithm.
    """
    network = network_at(config, prior, x.shape[-1], z)
    losses = gaussian_nll_of(apply(config, network.params, x)[:, 0], y, jnp.exp(network.log_noise))
    return 0.5 * jnp.sum(z**2) + jnp.sum(jnp.where(where, losses, 0.0))


def predictions(config: MLPConfig, prior: PriorConfig, samples: Array, x: Array) -> tuple[Array, Array]:
    """Means f[S, n] and noise variances f[S, 1] of sampled networks, f[S, P], at f[n, D]."""

    def one(z: Array) -> tuple[Array, Array]:
        network = network_at(config, prior, x.shape[-1], z)
        return apply(config, network.params, x)[:, 0], jnp.exp(network.log_noise)[None]

    means, noises = jax.vmap(one)(samples)
    return means, noises
