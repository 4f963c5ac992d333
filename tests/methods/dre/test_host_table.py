"""Rows of drawn lists, read from where the tasks have them."""

import tracemalloc

import jax
import numpy as np

from dre_jax.data import Task
from dre_jax.data.sampling import ListRows, sample_lists
from dre_jax.data.tasks import build_table
from dre_jax.methods.dre.host_table import HostTable


def make_tasks(sizes, d=3, seed=0):
    rng = np.random.default_rng(seed)
    # Ties, and features that a file may have in another type.
    return {str(n): Task(str(n), rng.random((n, d)), rng.integers(0, n, n) / n) for n in sizes}


def test_the_rows_are_those_of_the_whole_table():
    tasks, shape = make_tasks((4, 1, 30)), (3, 2, 6)
    table = build_table(tasks)
    drawn = jax.device_get(sample_lists(table, jax.random.key(0), shape, n_support=2, n_query=5))
    found = HostTable(tasks).gather(drawn)
    rows = np.concatenate([drawn.support, drawn.query], axis=-1)
    for name in ("x", "response", "level"):
        np.testing.assert_array_equal(getattr(found, name), np.asarray(getattr(table, name))[rows], strict=True)
    # As a table of their own, where each list is a task.
    own, lists = found.table(), found.rows()
    assert own.n_tasks == np.prod(shape)
    np.testing.assert_array_equal(own.x[lists.query], table.x[drawn.query])
    np.testing.assert_array_equal(own.response[lists.support], table.response[drawn.support])
    np.testing.assert_array_equal(lists.query_where, drawn.query_where)
    assert own.start.tolist() == list(range(0, rows.size, 7))


def test_a_file_is_not_read_into_memory(tmp_path):
    n, d = 20_000, 128
    written = np.random.default_rng(0).random((n, d), np.float32)
    np.save(tmp_path / "x.npy", written)
    y = np.arange(n, dtype=np.float64)
    tracemalloc.start()
    table = HostTable({"a": Task("a", np.load(tmp_path / "x.npy", mmap_mode="r"), y)})
    some, where = np.arange(50).reshape(1, 50), np.ones((1, 50), bool)
    found = table.gather(ListRows(some, where, some + 50, where))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < written.nbytes / 4
    np.testing.assert_array_equal(found.x[0], written[::-1][:100])
