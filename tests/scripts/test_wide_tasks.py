"""Tasks of many hyperparameters."""

import numpy as np
import pytest
from scipy.optimize import rosen
from sklearn.datasets import load_digits


def test_a_function_has_its_optimum_and_its_tasks_differ(part):
    """Rosenbrock's function by SciPy: the values of a task are an increasing line of it, and the optimum is 0."""
    script = part("rivals.wide_tasks")
    family = script.WideFamily("rosenbrock-60", 2)
    (first,), (second,) = family.tasks(0, 0), family.tasks(1, 0)
    drawn = script._drawn("rosenbrock-60", 0)
    points = np.random.default_rng(0).random((5, 60))
    values = first.evaluate([{f"x{i}": u for i, u in enumerate(point)} for point in points])
    plain = np.array([rosen(-2.0 + 4.0 * (point + np.asarray(drawn.shift))) for point in points])
    slope, offset = np.polyfit(plain, values, 1)
    np.testing.assert_allclose(values, slope * plain + offset, rtol=1e-6)
    assert slope < 0.0
    samples = family.samples()
    assert samples["0"].max() == pytest.approx(offset, rel=1e-6, abs=1e-6 * abs(slope) * plain.min())
    assert len(samples["1"]) == 1001
    assert first.design != second.design


def test_only_some_columns_of_a_function_matter(part):
    script = part("rivals.wide_tasks")
    for name, n_columns, n_active in (("hartmann-6-of-100", 100, 6), ("ackley-20-of-200", 200, 20)):
        (task,) = script.WideFamily(name, 1).tasks(0, 0)
        changed = dict(task.design[0]) | {f"x{i}": 0.123 for i in range(n_active, n_columns)}
        np.testing.assert_array_equal(*(task.evaluate([params]) for params in (task.design[0], changed)))
        assert task.evaluate([dict(changed) | {"x0": 0.9}]) != task.evaluate([changed])


def test_a_scale_of_zero_information_changes_no_accuracy(part):
    """The first pixel of every digit is blank."""
    assert not load_digits().data[:, 0].any()
    family = part("rivals.wide_tasks").WideFamily("digits-66", 9)
    assert list(family.groups()) == [0, 1, 2, 3]
    (task,) = family.tasks(2, 1)
    values = task.evaluate([{**task.design[0], "scale0": scale} for scale in (0.1, 10.0)])
    assert values[0] == values[1]
    assert 0.2 <= values[0] <= 1.0
