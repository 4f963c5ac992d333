"""Lists sampled from a `TaskTable` for training: everything that does not depend on the parameters."""

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data.sampling import sample_lists
from dre_jax.data.tasks import TaskTable
from dre_jax.losses import LOSSES, rank_sorted
from dre_jax.methods.dre.backends.reference.request import SampledLists
from dre_jax.methods.dre.host_table import GatheredRows
from dre_jax.methods.dre.model.ensemble import scale_response
from dre_jax.methods.dre.training_config import MetaTrainConfig

ListSource = TaskTable | GatheredRows
"""The table that lists are drawn from, or the rows of lists that were drawn before."""


def draw_bits(key: Array, shape: tuple[int, ...], config: MetaTrainConfig) -> Array:
    """Returns the random bits of lists, u32[*shape, 1 + K + Q]; each device needs only those of its lists."""
    return jax.random.bits(key, (*shape, 1 + config.n_support + config.n_query), jnp.uint32)


def lists_shape(members: int, config: MetaTrainConfig) -> tuple[int, int]:
    """Returns the numbers of members and of lists in a step; members that share lists count as one."""
    return members if config.own_lists else 1, config.lists_per_step


def draw_steps_bits(key: Array, steps: Array, members: int, config: MetaTrainConfig) -> Array:
    """Returns the bits of steps i32[steps], [steps, *lists_shape]; a step's depend on the key and its number alone."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, steps)
    return jax.vmap(lambda key: draw_bits(key, lists_shape(members, config), config))(keys)


def table_of(source: ListSource) -> TaskTable:
    """Returns the table that the row numbers of `read_lists` refer to."""
    return source if isinstance(source, TaskTable) else source.table()


def read_lists(source: ListSource, bits: Array, config: MetaTrainConfig) -> SampledLists:
    """Returns the lists that random bits select; for rows that were drawn before, the bits do not matter."""
    table, k = table_of(source), config.n_support
    rows = sample_lists(source, bits, n_support=k) if isinstance(source, TaskTable) else source.rows()
    response = table.response[rows.query]
    if LOSSES[config.loss.name].uses_values:
        # On the scale of the whole list, as in fine-tuning, where no table is known.
        list_rows = jnp.concatenate([rows.support, rows.query], axis=-1)
        where = jnp.concatenate([rows.support_where, rows.query_where], axis=-1)
        response = scale_response(table.response[list_rows], where)[..., rows.support.shape[-1] :]
    ranked_list = rank_sorted(response, table.level[rows.query], rows.query_where, config.loss.weights)
    return SampledLists(rows.support, rows.support_where, rows.query, ranked_list)
