"""Lists of a `TaskTable` made ready for training: everything that does not depend on the parameters."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.data.sampling import sample_lists, shuffle_ties
from dre_jax.data.tasks import TaskTable
from dre_jax.losses import RankedList, rank_sorted
from dre_jax.model import Support
from dre_jax.training.config import MetaTrainConfig


class Lists(NamedTuple):
    """Drawn lists; any batch dimensions in front. Rows are numbers in the table: features are read when needed."""

    support: Array
    """i32[..., K]"""
    support_where: Array
    """bool[..., K]"""
    query: Array
    """i32[..., Q], in the order of relevance."""
    ranked: RankedList
    """[..., Q]"""

    def read_support(self, table: TaskTable) -> Support:
        """The support's features and responses."""
        return Support(table.x[self.support], table.response[self.support], self.support_where)


def draw_member_lists(table: TaskTable, key: Array, members: int, config: MetaTrainConfig) -> Lists:
    """The lists of one training step, [members, lists_per_step]: each member's own, or the same for all."""
    if config.own_lists:
        return draw_lists(table, key, (members, config.lists_per_step), config)
    shared = draw_lists(table, key, (config.lists_per_step,), config)
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (members, *a.shape)), shared)


def draw_lists(table: TaskTable, key: Array, shape: tuple[int, ...], config: MetaTrainConfig) -> Lists:
    """Independent lists with the leading dimensions given.

    Args:
      table: the tasks.
      key: PRNG key.
      shape: leading dimensions.
      config: sizes of the lists, and the weights and ties that they are prepared for.
    """
    rows = sample_lists(table, key, shape, n_support=config.n_support, n_query=config.n_query)
    query, ties = rows.query, config.loss.ties
    if ties == "shuffle":
        coins = jax.random.bits(jax.random.fold_in(key, 1), query.shape, jnp.uint32)
        query = shuffle_ties(coins, query, table.level[query], rows.query_where)
    ranked = rank_sorted(table.response[query], table.level[query], rows.query_where, config.loss.weights, ties)
    return Lists(rows.support, rows.support_where, query, ranked)
