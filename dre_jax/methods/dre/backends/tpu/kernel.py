"""All epochs of a fine-tuning as one kernel: a group of members stays on the chip from the first to the last.

Lists are masks over the history: a list in the order of relevance is the history without some trials.
"""

import os
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import sequential_vmap

from dre_jax.methods.dre.backends.request import StepRequest
from dre_jax.methods.dre.backends.tpu.epoch import Trials, gradient
from dre_jax.methods.dre.backends.tpu.layout import (
    LANES,
    SUBLANES,
    LaneLayout,
    layout_of,
    pack,
    round_up,
    unpack,
    widest,
)
from dre_jax.methods.dre.ensemble import EnsembleParams, deep_set_response
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.optim.adam import Moments, StepSizes, apply_gradient

VARIABLE = "DRE_JAX_PALLAS"
_LONGEST = 512  # trials: their square is kept for each member
_AT_ONCE = 128  # epochs whose lists are brought in together
_MEMORY = 16 * 2**20  # bytes that a TPU's compiler gives a kernel
_ABREAST = 3  # groups at most that go through an epoch together: where one waits for a product, another has work


class Draws(NamedTuple):
    """Draws of the epochs, as numbers of the C trials of the history; f32[E, C] each."""

    share: Array
    """Of the mean over the support; zero outside."""
    response: Array
    """As the deep set sees it."""
    weight: Array
    """Of the trial's position; positive exactly where it is ranked."""


def masks_of(model: ModelConfig, response: Array, lists: SampledLists) -> tuple[Array, Draws]:
    """Returns the first trial of each trial's tie group, i32[C], and the draws of the epochs.

    Tie groups are the same in all epochs, so that sums over them are products with one matrix, not gathers. Trials that
    are tied but in no list together may have groups of their own.
    """
    slot = jnp.arange(response.shape[0], dtype=jnp.int32)
    in_support = (lists.support[:, :, None] == slot[None, None, :]) & lists.support_where[:, :, None]
    support, ranked = jnp.any(in_support, axis=1), lists.ranked_list
    count = jnp.sum(support, axis=1, keepdims=True, dtype=response.dtype)
    share = support.astype(response.dtype) / jnp.maximum(count, 1.0)
    scaled_y = deep_set_response(model, jnp.broadcast_to(response, support.shape), support)
    is_item = (lists.query[:, :, None] == slot[None, None, :]) & ranked.where[:, :, None]
    first = jnp.take_along_axis(lists.query, ranked.first, axis=1)
    group = jnp.min(jnp.where(is_item, first[:, :, None], slot[None, None, :]), axis=(0, 1))
    weight = jnp.sum(jnp.where(is_item, ranked.weight[:, :, None], 0.0), axis=1)
    return group, Draws(share, scaled_y, weight.astype(response.dtype))


def why_not(request: StepRequest) -> str | None:
    """Returns why the kernel does not take such steps, in a few words; None if it does.

    Supported is fine-tuning by ListMLE, with deep sets of the members' own or none, layers of up to 128, and histories
    of up to 512 trials in float32, as far as one group of members fits into the chip's memory with them.
    ``DRE_JAX_PALLAS=0`` turns the kernel off.
    """
    model = request.model
    if os.environ.get(VARIABLE, "1") == "0":
        return f"{VARIABLE}=0"
    if not request.params_only or request.own_lists or request.lists_per_step > 1 or request.is_averaged:
        return "it is for fine-tuning"
    if (reason := request.why_no_backend(("listmle",))) is not None:
        return reason
    if model.context == "shared":
        return "members share a deep set"
    if model.range_limit is not None:
        return "scores have a range controller"
    if widest(model) > LANES:
        return f"a layer is wider than {LANES}"
    if request.rows > _LONGEST:
        return f"the history is longer than {_LONGEST}"
    if max_groups_per_pass(layout_of(model, request.columns), 1, request.rows) == 0:
        return "a group of members does not fit into the chip's memory"
    return None


def take_steps(
    model: ModelConfig,
    x: Array,
    response: Array,
    start: tuple[EnsembleParams, Moments],
    lists: SampledLists,
    sizes: StepSizes,
    *,
    interpret: bool = False,
) -> tuple[tuple[EnsembleParams, Moments], Array]:
    """Returns the parameters that the scan over steps returns, with the moments of ``start`` and no losses.

    Several runs go one after the other, as the kernel works on one at a time anyway.
    """

    def run(params: EnsembleParams, x: Array, response: Array, lists: SampledLists, sizes: StepSizes) -> EnsembleParams:
        first, draws = masks_of(model, response, jax.tree.map(lambda a: a[:, 0, 0], lists))
        layout = layout_of(model, x.shape[1])
        packed_params = pack(layout, params, model.members)
        return unpack(layout, fit_members(model, packed_params, x, first, draws, sizes, interpret=interpret), params)

    params, moments = start
    losses = jnp.zeros((sizes.size.shape[0], model.members), x.dtype)
    return (sequential_vmap(run)(params, x, response, lists, sizes), moments), losses


def fit_members(
    model: ModelConfig,
    packed_params: Array,
    x: Array,
    first: Array,
    draws: Draws,
    steps: StepSizes,
    *,
    interpret: bool = False,
) -> Array:
    """Returns the parameters f32[groups, rows, 128] after all epochs, packed as `layout.pack` does.

    The history x f32[C, D] is best first, ``first`` i32[C] is the first of each trial's tie group, and ``steps`` are
    Adam's, f32[E] each. With ``interpret`` it runs without a TPU, slowly.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    layout, (groups, rows, _) = layout_of(model, x.shape[1]), packed_params.shape
    capacity, epochs = round_up(x.shape[0], SUBLANES), draws.share.shape[0]
    at_once = min(_AT_ONCE, round_up(epochs, SUBLANES))
    portions, groups_per_pass = -(-epochs // at_once), max_groups_per_pass(layout, groups, x.shape[0])
    x, first = _pad(x, capacity, round_up(x.shape[1], SUBLANES)), _pad(first[:, None], capacity, 1)
    draws = jax.tree.map(lambda a: _pad(a, portions * at_once, round_up(capacity, LANES)), draws)

    def whole(a: Array, **kind: Any) -> pl.BlockSpec:
        return pl.BlockSpec(a.shape, lambda g, b: (0,) * a.ndim, **kind)

    packed_params = jnp.pad(packed_params, ((0, round_up(groups, groups_per_pass) - groups), (0, 0), (0, 0)))
    together = pl.BlockSpec((groups_per_pass, rows, LANES), lambda g, b: (g, 0, 0))
    portion = pl.BlockSpec((at_once, draws.share.shape[1]), lambda g, b: (b, 0))
    sizes = [whole(a, memory_space=pltpu.SMEM) for a in steps]
    state = pltpu.VMEM((groups_per_pass, rows, LANES), packed_params.dtype)
    fitted_params = pl.pallas_call(
        partial(_kernel, model, layout, epochs),
        out_shape=jax.ShapeDtypeStruct(packed_params.shape, packed_params.dtype),
        grid=(packed_params.shape[0] // groups_per_pass, portions),
        in_specs=[together, whole(x), whole(first), portion, portion, portion, *sizes],
        out_specs=together,
        scratch_shapes=[state, state],
        interpret=interpret,
        name="fit_members",
    )(packed_params, x, first, *draws, *steps)
    return fitted_params[:groups]


def max_groups_per_pass(layout: LaneLayout, groups: int, trials: int) -> int:
    """Returns the number of groups in a pass: that with the fewest empty places, then the largest; 0 if none fits."""
    most = min(_ABREAST, _MEMORY // _bytes(layout, trials))
    return max(range(1, most + 1), key=lambda n: (-(round_up(groups, n) - groups), n), default=0)


def _bytes(layout: LaneLayout, trials: int) -> int:
    """Returns an upper bound of the memory of a group, as the compiler for a v5e allocates it.

    That is two and a half squares of trials for each member, what layers before and behind an activation give for every
    trial, parameters and moments with what brings them in and out, and the history.
    """
    wide = round_up(layout.parts["hidden_0_kernel_x"].part.size, LANES)
    layers = sum(name.startswith(("hidden", "phi")) and name.endswith("bias") for name in layout.parts)
    squares = 5 * layout.members * trials * round_up(trials, LANES) // 2
    floats = squares + 2 * trials * (layers * LANES + wide) + 6 * layout.rows * LANES
    return 4 * floats


def _pad(a: Array, rows: int, columns: int) -> Array:
    return jnp.pad(a, ((0, rows - a.shape[0]), (0, columns - a.shape[1])))


def _kernel(
    model: ModelConfig,
    layout: LaneLayout,
    epochs: int,
    start: Any,
    x: Any,
    first: Any,
    share: Any,
    response: Any,
    weight: Any,
    size: Any,
    floor: Any,
    params: Any,
    first_moment: Any,
    second_moment: Any,
) -> None:
    """Does a portion of the epochs of a group of members. Arguments are references to the chip's memory."""
    from jax.experimental import pallas as pl

    @pl.when(pl.program_id(1) == 0)
    def begin() -> None:
        params[...] = start[...]
        first_moment[...] = jnp.zeros(first_moment.shape, first_moment.dtype)
        second_moment[...] = jnp.zeros(second_moment.shape, second_moment.dtype)

    capacity, at_once = x.shape[0], share.shape[0]
    reaches = first[...] <= lax.broadcasted_iota(jnp.int32, (capacity, capacity), 1)
    before_this = pl.program_id(1) * at_once

    def epoch(i: Array, carry: None) -> None:
        rows = [a[pl.ds(i, 1), :] for a in (share, response, weight)]
        columns = _as_columns(rows, capacity)
        weight_row = rows[2][:, :capacity]
        trials = Trials(x[...], columns[0], columns[1], reaches, weight_row > 0, weight_row, columns[2])
        step = StepSizes(size[before_this + i], floor[before_this + i])
        # Step by step all groups: where one waits for its product, another has work.
        before, *moments = (_read(layout, state) for state in (params, first_moment, second_moment))
        slope = jax.vmap(partial(gradient, model, layout), in_axes=(0, None))(before, trials)
        new_state = apply_gradient(before, slope, Moments(*moments), step)
        for state, parts in zip((params, first_moment, second_moment), (new_state[0], *new_state[1]), strict=True):
            for name, part in layout.parts.items():
                state[:, part.at : part.at + part.height, :] = parts[name]
        return carry

    lax.fori_loop(0, jnp.minimum(at_once, epochs - before_this), epoch, None)


def _as_columns(rows: list[Array], length: int) -> list[Array]:
    """Returns rows f32[1, n] as columns f32[length, 1], by one transpose of a register."""
    place = lax.broadcasted_iota(jnp.int32, (SUBLANES, rows[0].shape[1]), 0)
    stacked_rows = jnp.zeros(place.shape, rows[0].dtype)
    for i, row in enumerate(rows):
        stacked_rows = jnp.where(place == i, row, stacked_rows)
    columns = stacked_rows.T[:length]
    return [columns[:, i : i + 1] for i in range(len(rows))]


def _read(layout: LaneLayout, state: Any) -> dict[str, Array]:
    return {name: state[:, part.at : part.at + part.height, :] for name, part in layout.parts.items()}
