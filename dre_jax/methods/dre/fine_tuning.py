"""Fine-tuning on the history of the task at hand (the paper, Algorithm 2, line 3), as a scan over epochs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import sequential_vmap

from dre_jax.data.sampling import draw_without_replacement, skip, support_size
from dre_jax.losses import LOSSES, PositionWeights, rank_sorted
from dre_jax.methods.dre.ensemble import EnsembleParams, Support, scores
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.native_steps import native_steps, supports_native
from dre_jax.methods.dre.tpu import fit_members, layout_of, masks_of, pack, supports_kernel, unpack
from dre_jax.methods.dre.training_config import FineTuneConfig
from dre_jax.optim.adam import Moments, StepSizes, apply_gradient, step_sizes, zero_moments

Carry = tuple[EnsembleParams, Moments]

_UNROLL = 2  # epochs in a turn of the loop: on a CPU 8 to 10 % less time than one, and no more is gained by four


def draw_epochs(config: FineTuneConfig, response: Array, level: Array, where: Array, key: Array) -> SampledLists:
    """Draws a support for every epoch, a fifth of the history; the rest is ranked. Rows are numbers in the history.

    The history, f32[C], i32[C] and bool[C], stands best first, empty slots last. A larger capacity draws the same rows:
    padding cannot change a result.
    """
    capacity = where.shape[0]
    k_max = max(1, capacity // 5)
    q_max = max(1, capacity - k_max)
    n = jnp.sum(where, dtype=jnp.int32)
    k = jnp.minimum(support_size(n, k_max), n)
    # Epochs last: slot j of epoch e has number j * E + e in the stream of bits, whatever the capacity.
    bits = jax.random.bits(key, (k_max, config.epochs), jnp.uint32).T
    support = jax.vmap(draw_without_replacement, in_axes=(0, None, None))(bits, n, k)
    query_slot = jnp.arange(q_max, dtype=jnp.int32)
    support_where = jnp.broadcast_to(jnp.arange(k_max) < k, support.shape)
    query_where = jnp.broadcast_to(query_slot < n - k, (config.epochs, q_max))
    query = jax.vmap(skip, in_axes=(None, 0))(query_slot, support)
    query = jnp.where(query_where, query, 0)
    ranked = rank_sorted(response[query], level[query], query_where, config.loss.weights)
    return SampledLists(jnp.where(support_where, support, 0), support_where, query, ranked)


def fine_tune(
    model: ModelConfig,
    config: FineTuneConfig,
    params: EnsembleParams,
    x: Array,
    response: Array,
    level: Array,
    where: Array,
    key: Array,
) -> EnsembleParams:
    """Returns parameters fitted to a history, starting from ``params``.

    The history is sorted by response, best first, empty slots last.

    Args:
      model: sizes.
      config: epochs, learning rate and loss.
      params: where fine-tuning starts.
      x: f32[C, D].
      response: f32[C], on the history's own scale, see `dre_jax.search.History`.
      level: i32[C], equal where responses are tied.
      where: bool[C], the filled slots.
      key: PRNG key.
    """
    if config.epochs == 0:
        return params
    epochs, steps = _draw(config, response, level, where, key)
    scanned, by_native = (partial(way, config.loss.name, model) for way in (_scan_epochs, _native_epochs))
    elsewhere: dict[str, Callable[..., EnsembleParams]] = {}
    if supports_native(model, config.loss.name, x, own_lists=False):
        elsewhere["cpu"] = by_native
    if supports_kernel(model, config.loss.name, x):

        def run(params: EnsembleParams, x: Array, response: Array, level: Array, where: Array, key: Array) -> Any:
            # Several runs go one after the other, as the kernel works on one at a time anyway. What is drawn for all at
            # once would take memory by the number of runs, and the compiler minutes in place of seconds.
            lists_and_sizes = _draw(config, response, level, where, key)
            return epochs_in_lanes(model, config.loss.weights, level, where, params, x, response, *lists_and_sizes)

        one_by_one = sequential_vmap(run)
        elsewhere["tpu"] = lambda params, x, response, *_: one_by_one(params, x, response, level, where, key)
    return lax.platform_dependent(params, x, response, epochs, steps, **elsewhere, default=scanned)


def _draw(
    config: FineTuneConfig, response: Array, level: Array, where: Array, key: Array
) -> tuple[SampledLists, StepSizes]:
    """Returns the lists and the step sizes of all epochs."""
    steps = step_sizes(config.learning_rates(), jnp.arange(config.epochs))
    return draw_epochs(config, response, level, where, key), steps


def _scan_epochs(
    loss_name: str,
    model: ModelConfig,
    params: EnsembleParams,
    x: Array,
    response: Array,
    epochs: SampledLists,
    steps: StepSizes,
) -> EnsembleParams:
    loss_of = LOSSES[loss_name].fn

    def epoch(carry: Carry, inputs: tuple[SampledLists, StepSizes]) -> tuple[Carry, None]:
        params, moments = carry
        one, step = inputs

        def loss(params: EnsembleParams) -> Array:
            support = Support(x[one.support], response[one.support], one.support_where)
            member_scores = scores(model, params, support, x[one.query])
            lists = jax.tree.map(lambda a: jnp.broadcast_to(a, member_scores.shape), one.ranked)
            # The sum over members: each member sees the gradient of its own loss.
            return jnp.sum(loss_of(member_scores, lists))

        return apply_gradient(params, jax.grad(loss)(params), moments, step), None

    return lax.scan(epoch, (params, zero_moments(params)), (epochs, steps), unroll=_UNROLL)[0][0]


def _native_epochs(
    loss_name: str,
    model: ModelConfig,
    params: EnsembleParams,
    x: Array,
    response: Array,
    epochs: SampledLists,
    steps: StepSizes,
) -> EnsembleParams:
    """Returns what `_scan_epochs` returns, computed by `dre_jax.native`."""
    # The list of an epoch is all members' only one.
    lists, start = jax.tree.map(lambda a: a[:, None, None], epochs), (params, zero_moments(params))
    return native_steps(model, loss_name, x, response, start, lists, steps, wants_losses=False)[0][0]


def epochs_in_lanes(
    model: ModelConfig,
    weights: PositionWeights,
    level: Array,
    where: Array,
    params: EnsembleParams,
    x: Array,
    response: Array,
    epochs: SampledLists,
    steps: StepSizes,
    *,
    interpret: bool = False,
) -> EnsembleParams:
    """Returns what the scan over epochs returns, computed by `dre_jax.methods.dre.tpu` with lists as masks."""
    layout, members = layout_of(model, x.shape[1]), jax.tree.leaves(params.scorers)[0].shape[0]
    first, draws = masks_of(model, weights, level, where, response, epochs)
    packed = fit_members(model, pack(layout, params, members), x, first, draws, steps, interpret=interpret)
    return unpack(layout, packed, params)
