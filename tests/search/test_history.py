import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import rankdata

from dre_jax import DataError, Task
from dre_jax.data.tasks import sort_task
from dre_jax.search import History, SearchTask, make_history, sort_history
from dre_jax.search.loop import history_and_candidates
from tests.error_messages import error_table


def trials(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)), np.round(rng.normal(size=n), 1)


@pytest.mark.parametrize("capacity", [None, 9, 14])
def test_make_history(capacity):
    x, y = trials(9)
    history = make_history(x, y, capacity)
    empty = (capacity or 9) - 9
    np.testing.assert_array_equal(history.where, [True] * 9 + [False] * empty)
    np.testing.assert_array_equal(history.x[:9], x.astype(np.float32))
    np.testing.assert_allclose(history.response[:9], (y - y.min()) / np.ptp(y), rtol=1e-6)
    np.testing.assert_array_equal(history.level[:9], rankdata(-y, method="dense") - 1)
    assert len(history.x) == len(history.response) == len(history.level) == 9 + empty
    assert [str(a.dtype) for a in history[:4]] == ["float32", "float32", "int32", "bool"]


def test_make_history_of_a_column_of_responses_of_nothing_and_of_one_trial():
    x, y = trials(4)
    np.testing.assert_array_equal(make_history(x, y[:, None]).response, make_history(x, y).response)
    nothing = make_history(np.zeros((0, 2)), np.zeros(0), capacity=3)
    assert nothing.x.shape == (3, 2)
    assert not nothing.where.any()
    np.testing.assert_array_equal(make_history(np.zeros((1, 2)), np.array([7.0])).response, 0.5)


test_make_history_refuses = error_table(
    DataError,
    (lambda: make_history(np.zeros(3), np.zeros(3)), "got (3,) and (3,)"),
    (lambda: make_history(np.zeros((3, 2)), np.zeros(4)), "got (3, 2) and (4,)"),
    (lambda: make_history(np.zeros((3, 2)), np.zeros((3, 2))), "got (3, 2) and (3, 2)"),
    (lambda: make_history(np.full((3, 2), np.nan), np.zeros(3)), "must hold finite numbers"),
    (lambda: make_history(np.zeros((3, 2)), np.array([0.0, np.inf, 1.0])), "must hold finite numbers"),
    (lambda: make_history(np.zeros((3, 2)), np.zeros(3), 2), "but got capacity=2 for n=3 trials"),
)


def test_sort_history_is_a_stable_sort_with_empty_slots_last():
    rng = np.random.default_rng(3)
    x, level, where = rng.random((12, 2)), rng.integers(0, 4, 12), rng.random(12) < 0.7
    response = np.where(where, 1.0 - level / 10.0, 99.0)
    fields = (x.astype(np.float32), response.astype(np.float32), level.astype(np.int32), where)
    result = sort_history(History(*jax.device_put(fields)))
    order = sorted(range(12), key=lambda i: (not where[i], level[i] if where[i] else 0))
    filled = int(where.sum())
    np.testing.assert_array_equal(result.where, where[order])
    for name, field in zip(History._fields[:4], fields, strict=True):
        np.testing.assert_array_equal(getattr(result, name)[:filled], field[order][:filled])


@pytest.mark.parametrize("outlier", [None, -1e9])
def test_the_loop_shows_histories_on_their_own_scale(outlier):
    """As `make_history` of the same trials: what the table holds besides does not count, however far away."""
    rng = np.random.default_rng(5)
    x, y = rng.random((30, 3)).astype(np.float32), rng.normal(size=30)
    if outlier is not None:
        y[0] = outlier
    task = sort_task(Task("one", x, y))
    arrays = jax.device_put((task.x, task.response, task.level, np.ones(30, bool), task.float32_residual))
    rows = np.flatnonzero(task.order != 0)[[4, 17, 2, 9]]
    table = SearchTask(*arrays)
    slots = jnp.asarray([*rows, -1, -1], jnp.int32), jnp.int32(4)
    shown, candidates = jax.jit(history_and_candidates)(table, *slots)
    expected = make_history(x[task.order[rows]], y[task.order[rows]], 6)
    np.testing.assert_array_equal(shown.where, expected.where)
    np.testing.assert_array_equal(shown.x[:4], expected.x[:4])
    np.testing.assert_allclose(shown.response, expected.response, atol=1e-5)
    np.testing.assert_array_equal(np.argsort(shown.level[:4]), np.argsort(expected.level[:4]))
    np.testing.assert_array_equal(np.flatnonzero(candidates.where), np.setdiff1d(np.arange(30), rows))
