"""One epoch of members that share lanes: scores, and the gradient of their losses. Written for a kernel: 2-D arrays."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.methods.dre.backends.tpu.layout import LANES, SUBLANES, LaneLayout
from dre_jax.methods.dre.model_config import ModelConfig

Params = dict[str, Array]
"""The parts of a `LaneLayout`, f32[height, 128] each."""


class Trials(NamedTuple):
    """A history of C trials as an epoch reads it, best first; all lists are masks over it."""

    x: Array
    """f32[C, D]"""
    share: Array
    """f32[C, 1], of the mean over the support; zero outside."""
    response: Array
    """f32[C, 1], as the deep set sees it."""
    reaches: Array
    """bool[C, C]: whether an item stands in the denominator of another, row: at or behind its tie group's first."""
    where: Array
    """bool[1, C]: which trials are ranked."""
    weight: Array
    """f32[1, C]: of their positions."""
    weight_column: Array
    """f32[C, 1]: the same."""


def gradient(model: ModelConfig, layout: LaneLayout, params: Params, trials: Trials) -> Params:
    """Returns the gradient of the sum of the members' ListMLE: that of its own loss for each member."""
    member_scores, pull_back = jax.vjp(partial(scores, model, layout, trials=trials), params)
    return pull_back(listmle_gradient(layout, member_scores, trials))[0]


def scores(model: ModelConfig, layout: LaneLayout, params: Params, trials: Trials) -> Array:
    """Returns scores of all trials, one row a member, f32[8 or more, C]; further rows are zero."""
    through = _through_slots(layout, params)
    h = _product(trials.x, params["hidden_0_kernel_x"]) + params["hidden_0_bias"]
    if model.context != "none":
        h = h + through("hidden_0_kernel_context", _context(model, params, through, trials))
    for i in range(1, len(model.hidden)):
        h = through(f"hidden_{i}_kernel", jax.nn.relu(h)) + params[f"hidden_{i}_bias"]
    own = _own_lanes(layout)
    out = _product_of_rows(jnp.where(own, params["out_kernel"], 0.0), jax.nn.relu(h))
    return out + jnp.sum(jnp.where(own, params["out_bias"], 0.0), axis=1, keepdims=True)


def _context(model: ModelConfig, params: Params, through: Callable[[str, Array], Array], trials: Trials) -> Array:
    """Returns the deep sets' contexts, each in its member's lanes, f32[1, 128]."""
    share, last = trials.share, len(model.phi) - 1
    x, response = trials.x, trials.response
    if last == 0:  # linear, so it maps the mean
        x, response = (jnp.sum(share * a, axis=0, keepdims=True) for a in (x, response))
    h = _product(x, params["phi_0_kernel_x"]) + response * params["phi_0_kernel_response"] + params["phi_0_bias"]
    for i in range(1, last):
        h = through(f"phi_{i}_kernel", jax.nn.relu(h)) + params[f"phi_{i}_bias"]
    if last > 0:
        h = jnp.sum(share * jax.nn.relu(h), axis=0, keepdims=True)
        h = through(f"phi_{last}_kernel", h) + params[f"phi_{last}_bias"]
    h = h * jnp.sum(share, axis=0, keepdims=True)
    for i in range(len(model.rho)):
        h = through(f"rho_{i}_kernel", h if i == 0 else jax.nn.relu(h)) + params[f"rho_{i}_bias"]
    return h


def _through_slots(layout: LaneLayout, params: Params) -> Callable[[str, Array], Array]:
    """Returns the function of a layer by name, from lanes to lanes: a product with a block-diagonal matrix."""
    row, lane = (lax.broadcasted_iota(jnp.int32, (LANES, LANES), axis) for axis in (0, 1))
    diagonal = _member(layout, row) == _member(layout, lane)

    def through(name: str, h: Array) -> Array:
        blocks = jnp.concatenate([params[name]] * layout.members, axis=0)
        return _product(h, jnp.where(diagonal, blocks, 0.0))

    return through


def _own_lanes(layout: LaneLayout) -> Array:
    """Returns the mask of each member's lanes, bool[8 or more, 128]."""
    shape = max(SUBLANES, layout.members), LANES
    row, lane = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
    return row == _member(layout, lane)


def _member(layout: LaneLayout, lane: Array) -> Array:
    """Returns the number of the member of a lane."""
    return lax.shift_right_logical(lane, jnp.int32(layout.slot.bit_length() - 1))


def listmle_gradient(layout: LaneLayout, scores: Array, trials: Trials) -> Array:
    """Returns the gradient of each member's ListMLE in its scores, f32[rows, C]; see `dre_jax.losses.listmle`.

    Of each pair one exponential: what stands in a denominator, over that denominator, is the item's share of it.
    """
    gradients, row = jnp.zeros_like(scores), lax.broadcasted_iota(jnp.int32, scores.shape, 0)
    in_list = trials.reaches & trials.where
    for member in range(layout.members):
        own = scores[member : member + 1]
        top = jnp.max(jnp.where(in_list, own, -jnp.inf), axis=1, keepdims=True)
        top = jnp.where(top == -jnp.inf, 0.0, top)
        terms = jnp.where(in_list, jnp.exp(own - top), 0.0)
        sums = jnp.sum(terms, axis=1, keepdims=True)
        share = trials.weight_column / jnp.where(sums == 0.0, 1.0, sums)
        member_gradient = jnp.sum(share * terms, axis=0, keepdims=True) - trials.weight
        gradients = jnp.where(row == member, member_gradient, gradients)
    return jnp.where(trials.where, gradients, 0.0)


def _dot(a: Array, b: Array, axis_a: int, axis_b: int) -> Array:
    return lax.dot_general(a, b, (((axis_a,), (axis_b,)), ((), ())), preferred_element_type=a.dtype)


@jax.custom_vjp
def _product(a: Array, b: Array) -> Array:
    """Returns ``a @ b``, whose derivative consists of products that a kernel supports."""
    return _dot(a, b, 1, 0)


_product.defvjp(
    lambda a, b: (_dot(a, b, 1, 0), (a, b)),
    lambda residuals, gradient: (_dot(gradient, residuals[1], 1, 1), _dot(residuals[0], gradient, 0, 0)),
)


@jax.custom_vjp
def _product_of_rows(a: Array, b: Array) -> Array:
    """Returns ``a @ b.T``, likewise."""
    return _dot(a, b, 1, 1)


_product_of_rows.defvjp(
    lambda a, b: (_dot(a, b, 1, 1), (a, b)),
    lambda residuals, gradient: (_dot(gradient, residuals[1], 1, 0), _dot(gradient, residuals[0], 0, 0)),
)
