"""Costs of trials: what is learned of them, and a search that is cheaper with them."""

import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space
from dre_jax.tuning.cost import learn_cost
from tests.error_messages import raises_line

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def cost_at(x):
    return np.exp(3.0 * x)


@pytest.mark.parametrize(("budget", "power"), [(None, 1.0), (4.0, 0.75)])
def test_a_weight_is_the_inverse_of_the_cost_to_a_power(budget, power):
    points = np.random.default_rng(0).random((40, 2))
    costs = np.append(cost_at(points[1:, 0]), np.nan)
    points = np.roll(points, -1, axis=0)
    budget = None if budget is None else budget * np.nansum(costs)
    model = learn_cost(SPACE.layout, points, costs, budget, 192, np.float32)
    at = np.array([[0.1, 0.5], [0.5, 0.2], [0.9, 0.8]], np.float32)
    weights = np.asarray(model.log_weight(at))
    np.testing.assert_allclose(np.diff(weights), -power * 3.0 * np.diff(at[:, 0]), rtol=0.05, atol=0.02)


def test_what_teaches_nothing():
    points = np.random.default_rng(0).random((10, 2))
    for costs in (np.full(10, 2.0), np.append([1.0, 2.0], np.full(8, np.nan))):
        assert learn_cost(SPACE.layout, points, costs, None, 192, np.float32) is None
    assert learn_cost(SPACE.layout, points, np.arange(1.0, 11.0), 55.0, 192, np.float32) is None, "all is spent"


def search(told, tmp_path):
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    for _ in range(16):
        trial = optimizer.ask()
        value = np.sin(18.0 * trial["x"]) + (trial["y"] - 0.5) ** 2
        optimizer.tell(trial, value, cost=cost_at(trial["x"]) if told else None)
    optimizer.save(tmp_path / f"{told}.json")
    return optimizer


def test_a_search_is_cheaper_when_it_knows_costs(tmp_path):
    """Of three optima of one value, at 0.26, 0.61 and 0.96, the first costs an eighth of the last."""
    with_costs, without = search(True, tmp_path), search(False, tmp_path)
    total = [sum(cost_at(trial["x"]) for trial in one.trials) for one in (with_costs, without)]
    assert total[0] < 0.8 * total[1]
    assert with_costs.best.value < -0.95
    assert with_costs.best.params["x"] == pytest.approx(0.262, abs=0.02)
    again = Optimizer.load(tmp_path / "True.json")
    assert [trial.cost for trial in again.trials] == [trial.cost for trial in with_costs.trials]
    assert again.ask().params == with_costs.ask().params


def test_refused():
    optimizer = Optimizer(SPACE)
    trial = optimizer.ask()
    for cost in (0.0, -1.0, float("inf"), float("nan"), "1"):
        with raises_line(DataError, "the cost of a trial"):
            optimizer.tell(trial, 1.0, cost=cost)
    with raises_line(ConfigError, "budget must be positive"):
        EngineConfig(budget=0.0)
