"""A small network that turns configurations into features for a kernel."""

from __future__ import annotations

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.model.initial import draw

Network = dict[str, Array]
"""``layer_<i>_kernel`` [inputs, outputs] and ``layer_<i>_bias`` [outputs] of each layer."""


def draw_network(n_inputs: int, layers: tuple[int, ...], key: Array) -> Network:
    """Random weights under which features differ about as much as inputs do (He et al. 2015), and zero biases.

    Args:
      n_inputs: columns of the input, and of what all rows share.
      layers: outputs of each layer; the last is the number of features.
      key: PRNG key.

    Example:
      >>> {name: a.shape for name, a in draw_network(3, (8, 2), jax.random.key(0)).items()}
      {'layer_0_bias': (8,), 'layer_0_kernel': (3, 8), 'layer_1_bias': (2,), 'layer_1_kernel': (8, 2)}
    """
    shapes = {}
    for i, (inputs, outputs) in enumerate(pairwise((n_inputs, *layers))):
        shapes[f"layer_{i}_kernel"] = jax.ShapeDtypeStruct((inputs, outputs), jnp.float32)
        shapes[f"layer_{i}_bias"] = jax.ShapeDtypeStruct((outputs,), jnp.float32)
    drawn = draw(shapes, "lecun_normal", key)
    # A ReLU lets half of the variance through.
    return {name: a if name.startswith("layer_0_") else a * math.sqrt(2.0) for name, a in drawn.items()}


def apply_network(network: Network, x: Array, shared: Array | None = None) -> Array:
    """Features, ReLU between layers and none after the last; f[n, D], and f[C] beside every row -> f[n, F]."""
    last = len(network) // 2 - 1
    for i in range(last + 1):
        kernel, bias = network[f"layer_{i}_kernel"], network[f"layer_{i}_bias"]
        if i == 0 and shared is not None:
            # What all rows share is multiplied once, not once a row.
            bias = bias + shared @ kernel[x.shape[-1] :]
            kernel = kernel[: x.shape[-1]]
        x = x @ kernel + bias[None, :]
        x = x if i == last else jax.nn.relu(x)
    return x
