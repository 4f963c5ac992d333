"""Networks for one list: a scorer and a deep set, whose parameters have the names of their layers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.nn.initial import layer_shapes

Params = Any
"""``<layer>_kernel`` [inputs, outputs] and ``<layer>_bias`` [outputs] of each layer; None for no network."""


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


def _affine(params: Params, name: str, *inputs: Array) -> Array:
    """Returns one dense layer of concatenated inputs: [n, d] blocks, or [d] blocks that all rows share.

    A shared block is multiplied once, not once for each row; the sum equals a dense layer of the concatenation.
    """
    kernel, shared = params[f"{name}_kernel"], params[f"{name}_bias"]
    start, rows = 0, None
    for block in inputs:
        part = kernel[start : start + block.shape[-1]]
        start += block.shape[-1]
        if block.ndim == 1:
            shared = shared + block @ part
        else:
            product = _product(block, part)
            rows = product if rows is None else rows + product
    return shared if rows is None else rows + shared[None, :]


def layer_names(params: Params, kind: str) -> list[str]:
    """Returns the names of the layers of a kind in their order: "hidden" of a scorer, "phi" and "rho" of a deep set."""
    return [f"{kind}_{i}" for i in range(sum(name.startswith(kind) for name in params) // 2)]


def score(params: Params, x: Array, context: Array | None) -> Array:
    """Returns the scores of one member, higher is better; x f32[n, D], context f32[C] or None -> f32[n]."""
    inputs = [x] if context is None else [x, context]
    for name in layer_names(params, "hidden"):
        inputs = [jax.nn.relu(_affine(params, name, *inputs))]
    return _affine(params, "out", *inputs)[:, 0]


def encode(params: Params, x: Array, response: Array, where: Array) -> Array:
    """Returns the context of a support set, in any order; x f32[k, D], response f32[k], where bool[k] -> f32[C]."""
    rows, (*before, last) = [x, response[:, None]], layer_names(params, "phi")
    for name in before:
        rows = [jax.nn.relu(_affine(params, name, *rows))]
    mask = where.astype(x.dtype)
    share = mask / jnp.maximum(jnp.sum(mask), 1.0)
    # The last layer is linear, so that it is applied once, to the mean. Without items the output is zero.
    context = _affine(params, last, *(share @ block for block in rows)) * jnp.sum(share)
    for i, name in enumerate(layer_names(params, "rho")):
        context = _affine(params, name, jax.nn.relu(context) if i else context)
    return context


def scorer_shapes(hidden: tuple[int, ...], n_inputs: int) -> Params:
    """Returns the shapes of the parameters of a scorer by the widths of its hidden layers."""
    return layer_shapes([*(f"hidden_{i}" for i in range(len(hidden))), "out"], (n_inputs, *hidden, 1))


def deep_set_shapes(phi: tuple[int, ...], rho: tuple[int, ...], n_columns: int) -> Params:
    """Returns the shapes of the parameters of a deep set by the widths of its layers before and after the mean."""
    names = [f"{kind}_{i}" for kind, widths in (("phi", phi), ("rho", rho)) for i in range(len(widths))]
    return layer_shapes(names, (n_columns + 1, *phi, *rho))
