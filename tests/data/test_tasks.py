import numpy as np
import pytest
from scipy.stats import rankdata

from dre_jax import DataError, Task
from dre_jax.data.tasks import build_table, sort_task, spaced_rows, tie_levels, unit_scale


def make_task(n, name="wine", columns=3, seed=0):
    """A task with ties."""
    rng = np.random.default_rng(seed)
    return Task(name, rng.random((n, columns)).astype(np.float32), np.round(rng.normal(size=n), 1))


def test_unit_scale_is_min_max_in_float64_over_its_whole_range():
    y, limit = np.random.default_rng(0).normal(size=50), np.finfo(np.float64).max
    for scale in (1e-300, 1.0, 1e300):
        scaled = unit_scale(y * scale)
        assert (scaled.dtype, scaled.min(), scaled.max()) == (np.float64, 0.0, 1.0)
        np.testing.assert_allclose(scaled, (y - y.min()) / (y.max() - y.min()), rtol=1e-12, atol=1e-15)
    for y, expected in (([-limit, 0.0, limit], [0.0, 0.5, 1.0]), ([3.0], [0.5]), ([-0.0, 0.0], [0.5, 0.5])):
        np.testing.assert_array_equal(unit_scale(np.array(y)), expected)


def test_tie_levels_are_scipys_dense_ranks():
    y = make_task(200).y
    levels = tie_levels(y)
    assert levels.dtype == np.int32
    assert len(set(y)) < len(y)
    np.testing.assert_array_equal(levels, rankdata(-y, method="dense") - 1)
    # They see differences that float32 does not.
    np.testing.assert_array_equal(tie_levels(np.array([0.5, 0.5 + 1e-12, 0.5])), [1, 0, 1])


@pytest.mark.parametrize(("n", "most"), [(0, 3), (1, 3), (3, 3), (5, 3), (64, 64), (65, 64), (200, 64), (7, 1)])
def test_spaced_rows_are_those_of_a_slow_loop(n, most):
    count = min(n, most)
    expected = [round(i * (n - 1) / max(count - 1, 1)) for i in range(count)]
    assert spaced_rows(n, most).tolist() == expected
    assert len(set(expected)) == count


def test_sort_task_keeps_rows_together_and_ties_in_the_order_of_the_file():
    task = make_task(100)
    result = sort_task(task)
    # Python's sort is stable, also in reverse.
    order = sorted(range(100), key=lambda i: -task.y[i])
    np.testing.assert_array_equal(result.order, order)
    np.testing.assert_array_equal(result.x, task.X[order])
    np.testing.assert_array_equal(result.level, rankdata(-task.y[order], method="dense") - 1)
    expected = (task.y[order] - task.y.min()) / (task.y.max() - task.y.min())
    np.testing.assert_allclose(result.response, expected, rtol=1e-6)
    assert (result.x.dtype, result.response.dtype, result.level.dtype) == (np.float32, np.float32, np.int32)


def test_float32_tells_responses_beside_a_far_outlier_apart():
    y = np.r_[-1e30, np.random.default_rng(0).random(50), -1e9]
    task = sort_task(Task("t", np.zeros((52, 1)), y))
    assert len(np.unique(task.response[:50])) == 50
    np.testing.assert_array_equal(task.level[-2:], [50, 51])
    span = 10_001 * (y.max() - np.median(y))
    np.testing.assert_allclose(task.response[:50], 1 - (y.max() - np.sort(y)[:1:-1]) / span, atol=1e-7)
    wide = np.array([-1.7e308, 0.0, 1.7e308])
    assert sort_task(Task("t", np.zeros((3, 1)), wide)).response.tolist() == [1.0, 0.5, 0.0]


def test_a_table_of_uneven_tasks():
    sizes = {"wine": 7, "iris": 1, "digits": 30}
    tasks = {name: make_task(n, name, seed=n) for name, n in sizes.items()}
    table = build_table(tasks)
    assert (table.n_tasks, table.n_columns) == (3, 3)
    np.testing.assert_array_equal(table.start, [0, 7, 8])
    np.testing.assert_array_equal(table.size, [7, 1, 30])
    for name in ("x", "response", "level"):
        expected = np.concatenate([getattr(sort_task(task), name) for task in tasks.values()])
        np.testing.assert_array_equal(getattr(table, name), expected, strict=True)
    assert {str(a.dtype) for a in (table.level, table.start, table.size)} == {"int32"}


def test_a_table_needs_tasks_of_one_width():
    with pytest.raises(DataError, match="a task table needs at least one task, but got none"):
        build_table({})
    with pytest.raises(DataError, match=r"must have one column count, but got \[2, 3\]"):
        build_table({"a": make_task(4, "a", 2), "b": make_task(4, "b", 3)})
