"""Networks for one list: a scorer and a deep set. Only this file imports flax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array, lax

Products = Literal["float32", "bfloat16"]
"""Number format that the inputs of matrix products are rounded to."""
Params = Any
"""A tree of arrays."""


class ScorerConfig(Protocol):
    """Sizes and settings of a scorer."""

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""

    @property
    def range_limit(self) -> float | None:
        """k of the range controller k * tanh(a * s); None disables it."""

    @property
    def range_slope(self) -> float:
        """a of the range controller."""

    @property
    def products(self) -> Products:
        """Number format that the inputs of matrix products are rounded to."""


class DeepSetConfig(Protocol):
    """Sizes of a deep set."""

    @property
    def phi(self) -> tuple[int, ...]:
        """Widths of the layers before the mean."""

    @property
    def rho(self) -> tuple[int, ...]:
        """Widths of the layers after the mean."""


_ZEROS = nn.initializers.zeros_init()  # a placeholder: `dre_jax.nn.initial` draws all weights at once


@jax.custom_vjp
def _product(rows: Array, kernel: Array) -> Array:
    """Returns ``rows @ kernel``; [n, d] and [d, h] -> [n, h].

    The derivative is written out, because the automatic one transposes the gradient in memory under `vmap`, and a
    training step takes about a tenth longer on a CPU.
    """
    return rows @ kernel


def _product_forward(rows: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return rows @ kernel, (rows, kernel)


def _product_backward(residuals: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    rows, kernel = residuals
    return gradient @ kernel.T, rows.T @ gradient


_product.defvjp(_product_forward, _product_backward)


def _rounded(a: Array, b: Array) -> Array:
    """Returns ``a @ b`` of inputs rounded to bfloat16, summed in float32."""
    return lax.platform_dependent(a, b, cpu=_rounded_on_a_cpu, default=_rounded_on_an_accelerator)


def _rounded_on_an_accelerator(a: Array, b: Array) -> Array:
    return jnp.matmul(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32)


def _rounded_on_a_cpu(a: Array, b: Array) -> Array:
    """Returns the same up to rounding of the sums. XLA has no such product on a CPU, and removes casts to and fro."""
    return jnp.matmul(*(lax.reduce_precision(one.astype(jnp.float32), 8, 7) for one in (a, b)))


@jax.custom_vjp
def _rounded_product(rows: Array, kernel: Array) -> Array:
    """Returns `_rounded` of rows and kernel; its derivative uses rounded products too."""
    return _rounded(rows, kernel)


def _rounded_forward(rows: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _rounded(rows, kernel), (rows.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16))


def _rounded_backward(residuals: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    rows, kernel = residuals
    return _rounded(gradient, kernel.T), _rounded(rows.T, gradient)


_rounded_product.defvjp(_rounded_forward, _rounded_backward)


def _through(block: Array, kernel: Array, products: Products) -> Array:
    """Returns ``block @ kernel`` for a block of rows or for one shared row."""
    if products == "bfloat16":
        return _rounded_product(jnp.atleast_2d(block), kernel).reshape(*block.shape[:-1], -1)
    return _product(block, kernel) if block.ndim == 2 else block @ kernel


def _affine(module: nn.Module, inputs: Sequence[Array], features: int, name: str, products: Products) -> Array:
    """Returns one dense layer of concatenated inputs: [n, d] blocks, or [d] blocks that all rows share.

    A shared block is multiplied once, not once for each row; the sum equals a dense layer of the concatenation.
    """
    width = sum(block.shape[-1] for block in inputs)
    kernel = module.param(f"{name}_kernel", _ZEROS, (width, features))
    bias = module.param(f"{name}_bias", _ZEROS, (features,))
    start, shared, rows = 0, bias, None
    for block in inputs:
        part = kernel[start : start + block.shape[-1]]
        start += block.shape[-1]
        product = _through(block, part, products)
        if block.ndim == 1:
            shared = shared + product
        else:
            rows = product if rows is None else rows + product
    return shared if rows is None else rows + shared[None, :]


class _Scorer(nn.Module):
    config: ScorerConfig

    @nn.compact
    def __call__(self, x: Array, context: Array | None) -> Array:
        config = self.config
        inputs = [x] if context is None else [x, context]
        for i, features in enumerate(config.hidden):
            hidden = nn.relu(_affine(self, inputs, features, f"hidden_{i}", config.products))
            inputs = [hidden]
        scores = _affine(self, inputs, 1, "out", config.products)[:, 0]
        if config.range_limit is None:
            return scores
        return config.range_limit * jnp.tanh(config.range_slope * scores)


class _DeepSet(nn.Module):
    config: DeepSetConfig
    products: Products = "float32"

    @nn.compact
    def __call__(self, x: Array, response: Array, where: Array) -> Array:
        config, products = self.config, self.products
        rows, last = [x, response[:, None]], len(config.phi) - 1
        for i, features in enumerate(config.phi[:-1]):
            rows = [nn.relu(_affine(self, rows, features, f"phi_{i}", products))]
        mask = where.astype(x.dtype)
        share = mask / jnp.maximum(jnp.sum(mask), 1.0)
        # The last layer is linear, so that it is applied once, to the mean. Without items the output is zero.
        means = [_through(share, block, products) for block in rows]
        mean = _affine(self, means, config.phi[-1], f"phi_{last}", products)
        inputs = [mean * jnp.sum(share)]
        for i, features in enumerate(config.rho):
            h = _affine(self, inputs, features, f"rho_{i}", products)
            inputs = [nn.relu(h)]
        return h


def scorer_shapes(config: ScorerConfig, n_inputs: int) -> Params:
    """Returns shapes of a scorer's parameters: ``<layer>_kernel`` [inputs, outputs], ``<layer>_bias`` [outputs]."""
    return jax.eval_shape(_Scorer(config).init, jax.random.key(0), jnp.zeros((1, n_inputs)), None)["params"]


def apply_scorer(config: ScorerConfig, params: Params, x: Array, context: Array | None) -> Array:
    """Returns scores of one member, higher is better; x f32[n, D], context f32[C] or None -> f32[n]."""
    return _Scorer(config).apply({"params": params}, x, context)  # type: ignore[return-value]


def deep_set_shapes(config: DeepSetConfig, n_columns: int) -> Params:
    """Returns the shapes of one deep set's parameters, named like a scorer's."""
    inputs = jnp.zeros((1, n_columns)), jnp.zeros(1), jnp.ones(1, bool)
    return jax.eval_shape(_DeepSet(config).init, jax.random.key(0), *inputs)["params"]


def apply_deep_set(
    config: DeepSetConfig,
    params: Params,
    x: Array,
    response: Array,
    where: Array,
    products: Products = "float32",
) -> Array:
    """Returns the context of a support set; x f32[k, D], response f32[k], where bool[k] -> f32[C].

    It does not depend on the order of the items.
    """
    return _DeepSet(config, products).apply({"params": params}, x, response, where)  # type: ignore[return-value]
