"""Meta-training: learning to rank the configurations of past tasks (the paper, Algorithm 1), as a scan over steps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from dre_jax.data.tasks import TaskTable
from dre_jax.methods.dre.backends import take_steps
from dre_jax.methods.dre.backends.reference.scan import Carry, member_losses
from dre_jax.methods.dre.host_table import GatheredRows
from dre_jax.methods.dre.lists import ListSource, draw_bits, draw_steps_bits, read_lists, table_of
from dre_jax.methods.dre.mesh import mean_over_lists, shard_over_mesh
from dre_jax.methods.dre.model.ensemble import EnsembleParams, init
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import TrainState
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.optim.adam import StepSizes, step_sizes, zero_moments

_START, _EVALUATION = 2**32 - 1, 2**32 - 2  # folded into the key in place of a step: no step has these numbers


@partial(jax.jit, static_argnames=("model", "config", "n_columns"))
def start(model: ModelConfig, config: MetaTrainConfig, n_columns: int, key: Array) -> TrainState:
    """Returns the state before the first step; `train` needs the same key."""
    params = init(model, n_columns, jax.random.fold_in(key, _START))
    return TrainState(params, zero_moments(params), jnp.zeros((), jnp.int32))


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

    The source has the tasks to learn from, or only the rows of these steps (`dre_jax.methods.dre.stream`). A step's
    lists depend only on the key and the step's number, so the same steps draw the same lists in other portions, or
    after an interruption. The state is donated: use the one returned. Members and lists are shared out over a mesh, on
    which state and source must lie, see `dre_jax.methods.dre.mesh`.
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


@partial(jax.jit, static_argnames=("model", "config", "n_steps"), donate_argnames="states")
def train_side_by_side(
    model: ModelConfig, config: MetaTrainConfig, tables: TaskTable, states: TrainState, key: Array, n_steps: int
) -> tuple[TrainState, Array]:
    """Does `train` for several search spaces, in front of tables and states; losses are f32[spaces, n_steps]."""

    def train_space(table: TaskTable, state: TrainState) -> tuple[TrainState, Array]:
        return train(model, config, table, state, key, n_steps)

    return jax.vmap(train_space)(tables, states)


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
    return take_steps(model, config.loss.name, table.x, table.response, start, lists, sizes, average=average)


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
    return jnp.mean(member_losses(model, config.loss.name, table.x, table.response, params, lists))


@partial(jax.jit, static_argnames=("model", "config"))
def evaluate_side_by_side(
    model: ModelConfig, config: MetaTrainConfig, tables: TaskTable, params: EnsembleParams, key: Array
) -> Array:
    """Returns `evaluate` of several search spaces, f32[spaces]."""
    return jax.vmap(lambda table, params: evaluate(model, config, table, params, key))(tables, params)
