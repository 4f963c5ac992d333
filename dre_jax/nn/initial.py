"""Weights at random: one draw for a whole network, then scaled layer by layer.

A draw for each layer gives the same distribution, but every draw is a program of its own to compile, and a method that
starts from random weights at every trial pays for it in each.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

Initialiser = Literal["lecun_normal", "torch_uniform"]

_TRUNCATED_DEVIATION = 0.87962566103423978  # of a normal variable cut at +-2


def draw(shapes: dict[str, Any], initialiser: Initialiser, key: Array) -> dict[str, Array]:
    """Random parameters for a flat tree of layers, ``<layer>_kernel`` [inputs, outputs] and ``<layer>_bias`` [outputs].

    "lecun_normal" is a truncated normal of variance 1/inputs with zero biases, Flax's default; "torch_uniform" is
    uniform in +-1/sqrt(inputs) for kernels and biases, PyTorch's default for a linear layer.
    """
    names = sorted(shapes)
    sizes = [math.prod(shapes[name].shape) for name in names]
    if initialiser == "lecun_normal":
        noise = jax.random.truncated_normal(key, -2.0, 2.0, (sum(sizes),)) / _TRUNCATED_DEVIATION
    else:
        noise = jax.random.uniform(key, (sum(sizes),), minval=-1.0, maxval=1.0)
    params, start = {}, 0
    for name, size in zip(names, sizes, strict=True):
        inputs = shapes[f"{name.rsplit('_', 1)[0]}_kernel"].shape[0]
        is_zero = initialiser == "lecun_normal" and name.endswith("_bias")
        values = jnp.zeros(size) if is_zero else noise[start : start + size] / math.sqrt(inputs)
        params[name] = values.reshape(shapes[name].shape)
        start += size
    return params


def add_inputs(kernel: Array, at: int, count: int) -> Array:
    """A layer's kernel f[..., inputs, outputs] with so many inputs more, whose weights are zero.

    Args:
      kernel: of the layer, or of the same layer of many networks.
      at: number of inputs in front of the new ones.
      count: of new inputs.

    Example:
      >>> add_inputs(jnp.ones((2, 1)), 1, 2).ravel().tolist()
      [1.0, 0.0, 0.0, 1.0]
    """
    zeros = jnp.zeros((*kernel.shape[:-2], count, kernel.shape[-1]), kernel.dtype)
    return jnp.concatenate([kernel[..., :at, :], zeros, kernel[..., at:, :]], axis=-2)
