"""Networks for one list: a scorer and a deep set. Only this file imports flax."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array
from jaxtyping import Bool, Float

Params = Any
"""A tree of arrays."""


_ZEROS = nn.initializers.zeros_init()  # a placeholder: `dre_jax.nn.initial` draws all weights at once


@jax.custom_vjp
def _product(rows: Float[Array, "n inputs"], kernel: Float[Array, "inputs outputs"]) -> Float[Array, "n outputs"]:
    """Returns ``rows @ kernel``.

    The derivative is written out, because the automatic one transposes the gradient in memory under `vmap`, and a
    training step takes about a tenth longer on a CPU.
    """
    return rows @ kernel


_Factors = tuple[Float[Array, "n inputs"], Float[Array, "inputs outputs"]]
"""Rows and a kernel."""


def _product_forward(
    rows: Float[Array, "n inputs"], kernel: Float[Array, "inputs outputs"]
) -> tuple[Float[Array, "n outputs"], _Factors]:
    return rows @ kernel, (rows, kernel)


def _product_backward(residuals: _Factors, gradient: Float[Array, "n outputs"]) -> _Factors:
    rows, kernel = residuals
    return gradient @ kernel.T, rows.T @ gradient


_product.defvjp(_product_forward, _product_backward)


def _through(block: Float[Array, "*n inputs"], kernel: Float[Array, "inputs outputs"]) -> Float[Array, "*n outputs"]:
    """Returns ``block @ kernel`` for a block of rows or for one shared row."""
    return _product(block, kernel) if block.ndim == 2 else block @ kernel


def _affine(
    module: nn.Module, inputs: Sequence[Float[Array, " ..."]], features: int, name: str
) -> Float[Array, "*n {features}"]:
    """Returns one dense layer of concatenated inputs: blocks with n rows, or blocks that all rows share.

    A shared block is multiplied once, not once for each row; the sum equals a dense layer of the concatenation.
    """
    width = sum(block.shape[-1] for block in inputs)
    kernel = module.param(f"{name}_kernel", _ZEROS, (width, features))
    bias = module.param(f"{name}_bias", _ZEROS, (features,))
    start, shared, rows = 0, bias, None
    for block in inputs:
        part = kernel[start : start + block.shape[-1]]
        start += block.shape[-1]
        product = _through(block, part)
        if block.ndim == 1:
            shared = shared + product
        else:
            rows = product if rows is None else rows + product
    return shared if rows is None else rows + shared[None, :]


class Scorer(nn.Module):
    """Scores of one member, higher is better."""

    hidden: tuple[int, ...]
    """Widths of the hidden layers."""
    range_limit: float | None
    """k of the range controller k * tanh(a * s); None disables it."""
    range_slope: float
    """a of the range controller."""

    @nn.compact
    def __call__(self, x: Float[Array, "n D"], context: Float[Array, " C"] | None) -> Float[Array, " n"]:
        """Returns the scores; without a context, they depend on the configurations alone."""
        inputs = [x] if context is None else [x, context]
        for i, features in enumerate(self.hidden):
            activations = nn.relu(_affine(self, inputs, features, f"hidden_{i}"))
            inputs = [activations]
        scores = _affine(self, inputs, 1, "out")[:, 0]
        return scores if self.range_limit is None else self.range_limit * jnp.tanh(self.range_slope * scores)


class DeepSet(nn.Module):
    """The context of a support set, in any order."""

    phi: tuple[int, ...]
    """Widths of the layers before the mean."""
    rho: tuple[int, ...]
    """Widths of the layers after the mean."""

    @nn.compact
    def __call__(
        self, x: Float[Array, "K D"], response: Float[Array, " K"], where: Bool[Array, " K"]
    ) -> Float[Array, " C"]:
        """Returns the context."""
        rows, last = [x, response[:, None]], len(self.phi) - 1
        for i, features in enumerate(self.phi[:-1]):
            rows = [nn.relu(_affine(self, rows, features, f"phi_{i}"))]
        mask = where.astype(x.dtype)
        share = mask / jnp.maximum(jnp.sum(mask), 1.0)
        # The last layer is linear, so that it is applied once, to the mean. Without items the output is zero.
        means = [_through(share, block) for block in rows]
        mean = _affine(self, means, self.phi[-1], f"phi_{last}")
        inputs = [mean * jnp.sum(share)]
        for i, features in enumerate(self.rho):
            h = _affine(self, inputs, features, f"rho_{i}")
            inputs = [nn.relu(h)]
        return h


def scorer_shapes(scorer: Scorer, n_inputs: int) -> Params:
    """Returns the shapes of the parameters: ``<layer>_kernel`` [inputs, outputs] and ``<layer>_bias`` [outputs]."""
    return jax.eval_shape(scorer.init, jax.random.key(0), jnp.zeros((1, n_inputs)), None)["params"]


def deep_set_shapes(deep_set: DeepSet, n_columns: int) -> Params:
    """Returns the shapes of the parameters, named like a scorer's."""
    inputs = jnp.zeros((1, n_columns)), jnp.zeros(1), jnp.ones(1, bool)
    return jax.eval_shape(deep_set.init, jax.random.key(0), *inputs)["params"]


def apply(network: nn.Module, params: Params, *inputs: Array | None) -> Array:
    """Returns the output of a network with parameters."""
    return network.apply({"params": params}, *inputs)  # type: ignore[return-value]
