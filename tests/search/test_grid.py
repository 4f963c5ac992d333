"""The compiled grid of runs: what it keeps in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.runtime.devices import local
from dre_jax.search.grid import GridConfig, grid, mesh_for
from dre_jax.search.loop import SearchTask

ROWS, COLUMNS, DESIGNS = 1000, 128, 16


class AlongTheFirst:
    """Reads the table, and values every run's candidates by its own history."""

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        return candidates.x @ history.x[0]


@pytest.mark.parametrize("side_by_side", [True, False])
def test_the_runs_of_a_task_share_its_table(side_by_side):
    table = SearchTask(
        x=jnp.zeros((1, ROWS, COLUMNS)),
        response=jnp.zeros((1, ROWS)),
        level=jnp.zeros((1, ROWS), jnp.int32),
        where=jnp.ones((1, ROWS), bool),
    )
    config = GridConfig(2, mesh_for(local()[:1], 1, DESIGNS), side_by_side)
    designs, keys = np.zeros((1, DESIGNS, 5), np.int32), jax.random.split(jax.random.key(0), (1, DESIGNS))
    counts = np.array([[[1, DESIGNS]]], np.int32)
    compiled = grid.lower(AlongTheFirst(), None, table, designs, keys, counts, config).compile()
    memory, one = compiled.memory_analysis(), ROWS * COLUMNS * 4
    assert one < memory.argument_size_in_bytes < 1.2 * one
    # Values and masks of every run, but no table of its own.
    assert memory.temp_size_in_bytes < 2 * one
