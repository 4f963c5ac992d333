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
from dre_jax.losses import PositionWeights, rank_sorted
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.lists import SampledLists
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.native_steps import native_steps, supports_native
from dre_jax.methods.dre.steps import Carry, scan_steps
from dre_jax.methods.dre.tpu import fit_members, layout_of, masks_of, pack, supports_kernel, unpack
from dre_jax.methods.dre.training_config import FineTuneConfig
from dre_jax.optim.adam import StepSizes, step_sizes, zero_moments

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
    ranked_list = rank_sorted(response[query], level[query], query_where, config.loss.weights)
    return SampledLists(jnp.where(support_where, support, 0), support_where, query, ranked_list)


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
    by_scan = partial(fit_epochs, partial(scan_steps, model, config.loss.name, unroll=_UNROLL))
    elsewhere: dict[str, Callable[..., EnsembleParams]] = {}
    if supports_native(model, config.loss.name, x, own_lists=False):
        elsewhere["cpu"] = partial(fit_epochs, partial(native_steps, model, config.loss.name, wants_losses=False))
    if supports_kernel(model, config.loss.name, x):

        def run(params: EnsembleParams, x: Array, response: Array, level: Array, where: Array, key: Array) -> Any:
            # Several runs go one after the other, as the kernel works on one at a time anyway. What is drawn for all at
            # once would take memory by the number of runs, and the compiler minutes in place of seconds.
            lists_and_sizes = _draw(config, response, level, where, key)
            return epochs_in_lanes(model, config.loss.weights, level, where, params, x, response, *lists_and_sizes)

        one_by_one = sequential_vmap(run)
        elsewhere["tpu"] = lambda params, x, response, *_: one_by_one(params, x, response, level, where, key)
    return lax.platform_dependent(params, x, response, epochs, steps, **elsewhere, default=by_scan)


def _draw(
    config: FineTuneConfig, response: Array, level: Array, where: Array, key: Array
) -> tuple[SampledLists, StepSizes]:
    """Returns the lists and the step sizes of all epochs."""
    steps = step_sizes(config.learning_rates(), jnp.arange(config.epochs))
    return draw_epochs(config, response, level, where, key), steps


def fit_epochs(
    take_steps: Callable[..., tuple[Carry, Array]],
    params: EnsembleParams,
    x: Array,
    response: Array,
    epochs: SampledLists,
    steps: StepSizes,
) -> EnsembleParams:
    """Returns the parameters after the epochs, by `scan_steps` or `native_steps` of a model and a loss."""
    # An epoch has one list, which all members share.
    lists, start = jax.tree.map(lambda a: a[:, None, None], epochs), (params, zero_moments(params))
    return take_steps(x, response, start, lists, steps)[0][0]


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
    packed_params = fit_members(model, pack(layout, params, members), x, first, draws, steps, interpret=interpret)
    return unpack(layout, packed_params, params)
