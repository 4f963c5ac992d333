"""The compiled loops as functions in JAX. Ask `available` first."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.native.build import DRAW, STEPS
from dre_jax.runtime import devices


class Lists(NamedTuple):
    """The lists of all steps, [steps, members, lists] in front; one member if all members share lists."""

    support: Array
    """i32[..., K], rows of a table."""
    support_where: Array
    """bool[..., K]"""
    support_response: Array
    """f32[..., K], as the deep set sees it."""
    query: Array
    """i32[..., Q], rows of the table in the order of relevance."""
    response: Array
    """f32[..., Q], like the rest as in `dre_jax.losses.RankedList`."""
    where: Array
    """bool[..., Q]"""
    weight: Array
    """f32[..., Q]"""
    first: Array
    """i32[..., Q]"""
    last: Array
    """i32[..., Q]"""


def train_steps(
    scorers: Array,
    deep_sets: Array,
    x: Array,
    lists: Lists,
    size: Array,
    floor: Array,
    *,
    hidden: tuple[int, ...],
    phi: tuple[int, ...],
    rho: tuple[int, ...],
    loss: str,
    wants_losses: bool,
) -> tuple[Array, Array, Array]:
    """Does steps of Adam on the mean loss of each step's lists, for every member.

    Args:
      scorers: f32[3, members, P], parameters and Adam's first and second moments: layer after layer, kernel, row by
        row, and bias.
      deep_sets: f32[3, members, S], likewise. Members that share a single one must share lists. f32[3, 1, 0] without
        deep sets.
      x: f32[rows, D], the table.
      lists: the lists of the steps.
      size: f32[steps], learning rate with Adam's bias corrections.
      floor: f32[steps], epsilon likewise.
      hidden: widths of the scorer's hidden layers.
      phi: widths of the deep set's layers before the mean; none without a deep set.
      rho: widths of the deep set's layers after the mean.
      loss: "listmle" or "mean_squared_error", see `dre_jax.losses`.
      wants_losses: whether losses are computed.

    Returns:
      Scorers and deep sets after the last step, and the losses, f32[steps, members], which are meaningless without
      ``wants_losses``.
    """
    like = [jax.ShapeDtypeStruct(rows.shape, rows.dtype) for rows in (scorers, deep_sets)]
    losses = jax.ShapeDtypeStruct((size.shape[0], scorers.shape[1]), scorers.dtype)
    call = jax.ffi.ffi_call(STEPS, [*like, losses], vmap_method="sequential")
    return tuple(  # type: ignore[return-value]
        call(
            *(scorers, deep_sets, x, *lists, size, floor),
            **{name: np.array(widths, np.int64) for name, widths in (("hidden", hidden), ("phi", phi), ("rho", rho))},
            loss=loss,
            wants_losses=np.bool_(wants_losses),
            # Where every core is a device, each core already has work.
            threads=np.int64(max(1, devices.cores() // jax.local_device_count("cpu"))),
        )
    )


def draw_without_replacement(draws: Array, newest: Array, k: Array) -> Array:
    """Returns Floyd's choice of k numbers; see `dre_jax.data.sampling.draw_without_replacement`.

    Args:
      draws: i32[length], each from 0 to `newest`.
      newest: i32[length], the number that becomes available at each step.
      k: i32 scalar, numbers to choose.

    Returns:
      i32[length] in increasing order; slots from k on hold 2**31 - 1.
    """
    like = jax.ShapeDtypeStruct(draws.shape, jnp.int32)
    return jax.ffi.ffi_call(DRAW, like, vmap_method="broadcast_all")(draws, newest, k)
