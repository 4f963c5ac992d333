"""Meta-training: learning to rank the configurations of past tasks (the paper, Algorithm 1), as a scan over steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh

from dre_jax.losses import LOSSES
from dre_jax.methods.dre.ensemble import EnsembleParams, Support, init, member_axes, member_scores
from dre_jax.methods.dre.host_table import GatheredRows
from dre_jax.methods.dre.lists import (
    ListSource,
    SampledLists,
    draw_bits,
    draw_steps_bits,
    read_lists,
    table_of,
)
from dre_jax.methods.dre.mesh import mean_over_lists, shard_over_mesh
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.native_steps import native_steps, supports_native
from dre_jax.methods.dre.state import TrainState
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.optim.adam import Moments, StepSizes, apply_gradient, step_sizes, zero_moments

_START, _EVALUATION = 2**32 - 1, 2**32 - 2  # folded into the key in place of a step: no step has these numbers

Carry = tuple[EnsembleParams, Moments]


@partial(jax.jit, static_argnames=("model", "config", "n_columns"))
def start(model: ModelConfig, config: MetaTrainConfig, n_columns: int, key: Array) -> TrainState:
    """Returns the state before the first step; `train` needs the same key."""
    params = init(model, n_columns, jax.random.fold_in(key, _START))
    return TrainState(params, zero_moments(params), jnp.zeros((), jnp.int32))


def _member_losses(
    model: ModelConfig, loss: str, x: Array, response: Array, params: EnsembleParams, lists: SampledLists
) -> Array:
    """Returns the mean loss f32[M] of each member over its own lists [M, B], or over those of all members, [1, B]."""

    def member_loss(params: EnsembleParams, lists: SampledLists) -> Array:
        def scores(one: SampledLists) -> Array:
            support = Support(x[one.support], response[one.support], one.support_where)
            return member_scores(model, params, support, x[one.query])

        return jnp.mean(LOSSES[loss].fn(jax.vmap(scores)(lists), lists.ranked_list))

    axis = None if len(lists.support) == 1 else 0
    lists = jax.tree.map(lambda a: a[0], lists) if axis is None else lists
    return jax.vmap(member_loss, in_axes=(member_axes(model), axis))(params, lists)


@partial(jax.jit, static_argnames=("model", "config", "n_steps", "mesh"), donate_argnames="state")
def train(
    model: ModelConfig,
    config: MetaTrainConfig,
    source: ListSource,
    state: TrainState,
    key: Array,
    n_steps: int,
    mesh: Mesh | None = None,
) -> tuple[TrainState, Array]:
    """Does ``n_steps`` steps; returns the new state and the mean loss of each step, f32[n_steps].

    A step's lists depend on the key and on the step's number alone, so that the same steps in other portions, or after
    an interruption, draw the same lists.

    Args:
      model: sizes.
      config: what training does.
      source: the tasks to learn from, or the rows of just these steps, see `dre_jax.methods.dre.stream`.
      state: donated; use the one returned.
      key: PRNG key, the same for all portions of one training.
      n_steps: static.
      mesh: members and lists are shared out over it; state and source must lie there. See `dre_jax.methods.dre.mesh`.
    """
    steps = state.step + jnp.arange(n_steps, dtype=jnp.int32)
    bits = draw_steps_bits(key, steps, model.members, config)
    sizes = step_sizes(config.learning_rates(), steps)
    average = None if mesh is None else mean_over_lists(mesh)
    do: Callable[..., tuple[Carry, Array]] = partial(_do_steps, model, config, average)
    if mesh is not None:
        do = shard_over_mesh(do, mesh, model, config.own_lists, is_gathered=isinstance(source, GatheredRows))
    (params, moments), losses = do(source, (state.params, state.moments), bits, sizes)
    return TrainState(params, moments, state.step + n_steps), jnp.mean(losses, axis=1)


def _do_steps(
    model: ModelConfig,
    config: MetaTrainConfig,
    average: Callable[[Any], Any] | None,
    source: ListSource,
    start: Carry,
    bits: Array,
    sizes: StepSizes,
) -> tuple[Carry, Array]:
    """Does steps for the members in ``start``; returns their parameters, moments and losses f32[steps, members].

    Where other devices have lists of the same members, ``average`` takes the mean over them.
    """
    table, lists = table_of(source), read_lists(source, bits, config)
    arguments = table.x, table.response, start, lists, sizes
    by_scan = partial(scan_steps, model, config.loss.name, average=average or (lambda tree: tree))
    if average is None and supports_native(model, config.loss.name, table.x, own_lists=config.own_lists):
        by_native = partial(native_steps, model, config.loss.name, wants_losses=True)
        return lax.platform_dependent(*arguments, cpu=by_native, default=by_scan)
    return by_scan(*arguments)


def scan_steps(
    model: ModelConfig,
    loss: str,
    x: Array,
    response: Array,
    start: Carry,
    lists: SampledLists,
    sizes: StepSizes,
    *,
    average: Callable[[Any], Any] = lambda tree: tree,
    unroll: int = 1,
) -> tuple[Carry, Array]:
    """Does steps of Adam for the members in ``start``; arguments and results as of `native_steps`.

    ``average`` takes the mean of gradients and losses over devices; ``unroll`` is the number of steps in one iteration.
    """

    def step(carry: Carry, inputs: tuple[SampledLists, StepSizes]) -> tuple[Carry, Array]:
        params, moments = carry
        lists, size = inputs

        def total(params: EnsembleParams) -> tuple[Array, Array]:
            each = _member_losses(model, loss, x, response, params, lists)
            # The sum over members: each member sees the gradient of its own loss.
            return jnp.sum(each), each

        gradient, losses = average(jax.grad(total, has_aux=True)(params))
        return apply_gradient(params, gradient, moments, size), losses

    return lax.scan(step, start, (lists, sizes), unroll=unroll)


def portion(config: MetaTrainConfig) -> int:
    """Returns the number of steps in one call of `train`, which bounds the memory of its lists."""
    return max(10, min(200, 2000 // config.lists_per_step))


def evaluation_bits(model: ModelConfig, config: MetaTrainConfig, key: Array) -> Array:
    """Returns the random bits of the lists of `evaluate`, [members, lists]."""
    return draw_bits(jax.random.fold_in(key, _EVALUATION), (model.members, config.evaluation_lists), config)


@partial(jax.jit, static_argnames=("model", "config"))
def evaluate(
    model: ModelConfig, config: MetaTrainConfig, source: ListSource, params: EnsembleParams, key: Array
) -> Array:
    """Returns the mean loss over fixed lists, a scalar; the same key gives the same lists."""
    table, lists = table_of(source), read_lists(source, evaluation_bits(model, config, key), config)
    return jnp.mean(_member_losses(model, config.loss.name, table.x, table.response, params, lists))
