"""Random initial weights: one draw for a whole network, then scaled layer by layer.

A draw for each layer has the same distribution, but XLA compiles a program for each draw, and a method that initialises
a network in every trial compiles all of them.
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Key

Initialiser = Literal["lecun_normal", "torch_uniform"]

_TRUNCATED_DEVIATION = 0.87962566103423978  # standard deviation of a normal variable truncated at +-2


def draw(shapes: dict[str, Any], initialiser: Initialiser, key: Key[Array, ""]) -> dict[str, Array]:
    """Draws parameters of a flat tree of layers, ``<layer>_kernel`` [inputs, outputs] and ``<layer>_bias`` [outputs].

    "lecun_normal" is a truncated normal of variance 1/inputs with zero biases, Flax's default; "torch_uniform" is
    uniform in +-1/sqrt(inputs) for kernels and biases, PyTorch's default for a linear layer.
    """
    count = sum(math.prod(shape.shape) for shape in shapes.values())
    if initialiser == "lecun_normal":
        noise = jax.random.truncated_normal(key, -2.0, 2.0, (count,)) / _TRUNCATED_DEVIATION
    else:
        noise = jax.random.uniform(key, (count,), minval=-1.0, maxval=1.0)
    params = unflatten(shapes, noise)
    for name, values in params.items():
        inputs = shapes[f"{name.rsplit('_', 1)[0]}_kernel"].shape[0]
        is_zero = initialiser == "lecun_normal" and name.endswith("_bias")
        params[name] = jnp.zeros(values.shape) if is_zero else values / math.sqrt(inputs)
    return params


def unflatten(shapes: dict[str, Any], values: Float[Array, " n"], start: int = 0) -> dict[str, Array]:
    """Returns the arrays of a flat tree, in the order of their names, from a vector of all elements from `start` on."""
    params = {}
    for name in sorted(shapes):
        stop = start + math.prod(shapes[name].shape)
        params[name] = values[start:stop].reshape(shapes[name].shape)
        start = stop
    return params


def add_inputs(
    kernel: Float[Array, "*batch inputs outputs"], at: int, count: int
) -> Float[Array, "*batch inputs+{count} outputs"]:
    """Returns a kernel with ``count`` more inputs after the first ``at``, of weight 0.

    Example:
      >>> add_inputs(jnp.ones((2, 1)), 1, 2).ravel().tolist()
      [1.0, 0.0, 0.0, 1.0]
    """
    zeros = jnp.zeros((*kernel.shape[:-2], count, kernel.shape[-1]), kernel.dtype)
    return jnp.concatenate([kernel[..., :at, :], zeros, kernel[..., at:, :]], axis=-2)
