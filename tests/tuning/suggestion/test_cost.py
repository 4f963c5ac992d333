"""Costs of trials: what is learned of them, and a search that is cheaper with them."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dre_jax import ConfigError, DataError, EngineConfig, Evaluated, Float, Optimizer, Space, Surrogate, past_of
from dre_jax.tuning.engine import engine as engine_module
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.past.studies import keep_studies
from dre_jax.tuning.suggestion.cost import cost_record, fit_cost, learn_past_cost
from dre_jax.tuning.suggestion.state import StudyState
from tests.error_messages import raises_line
from tests.known_methods import NEAREST, TaskMeans

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def cost_at(x):
    return np.exp(3.0 * x)


def learn_cost(points, costs, left=1.0, past=None):
    """The model of a study that has spent all but a share of its budget; None if it does not apply."""
    n, none = np.int32(len(points)), np.int32(0)
    state = StudyState(points, np.zeros(n), n, none, points[:0], none, costs=costs, spent=np.float64(1.0 - left))
    record = cost_record(
        Engine(SPACE, config=EngineConfig(budget=1.0)).study_config, state, len(points), has_past=past is not None
    )
    return fit_cost(Engine(SPACE).study_config, jax.device_put(record), past) if record.applies else None


@pytest.mark.parametrize("power", [1.0, 0.75])
def test_a_weight_is_the_inverse_of_the_cost_to_a_power(power):
    points = np.random.default_rng(0).random((40, 2))
    costs = np.append(cost_at(points[1:, 0]), np.nan)
    points = np.roll(points, -1, axis=0)
    model = learn_cost(points, costs, power)
    at = np.array([[0.1, 0.5], [0.5, 0.2], [0.9, 0.8]], np.float32)
    weights = np.asarray(model.log_weight(at))
    np.testing.assert_allclose(np.diff(weights), -power * 3.0 * np.diff(at[:, 0]), rtol=0.05, atol=0.02)


def test_costs_without_information():
    points = np.random.default_rng(0).random((10, 2))
    for costs in (np.full(10, 2.0), np.append([1.0, 2.0], np.full(8, np.nan))):
        assert learn_cost(points, costs) is None
    assert learn_cost(points, np.arange(1.0, 11.0), left=0.0) is None, "all is spent"


def test_failed_trials_spend_of_the_budget(monkeypatch, tmp_path):
    shares = []
    record = engine_module.cost_record

    def spy(*args, **options):
        result = record(*args, **options)
        shares.append(None if result is None else result.power)
        return result

    monkeypatch.setattr(engine_module, "cost_record", spy)
    surrogate = Surrogate(SPACE, "near", NEAREST, None)  # which compiles little
    optimizer = Optimizer(SPACE, surrogate, config=EngineConfig(budget=16.0, failure_model=False))
    optimizer.tell(optimizer.ask(), 1.0, cost=1.0)
    optimizer.add({"x": 0.3, "y": 0.3}, 2.0, cost=1.0)  # while all values are equal, no cost is learned
    assert optimizer.tell_failed(optimizer.ask(), cost=4.0).cost == 4.0
    assert optimizer.tell(optimizer.ask(), float("nan"), cost=1.0).cost == 1.0
    optimizer.add({"x": 0.1, "y": 0.1}, None, cost=1.0)
    optimizer.save(tmp_path / "study.json")
    Optimizer.load(tmp_path / "study.json", surrogate).ask()
    assert shares[-1] == 0.5
    with raises_line(DataError, "the cost of a trial must be finite and positive, but got 0.0"):
        optimizer.tell_failed(optimizer.ask(), cost=0.0)


def search(costs_reported, tmp_path):
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    for _ in range(16):
        trial = optimizer.ask()
        value = np.sin(18.0 * trial["x"]) + (trial["y"] - 0.5) ** 2
        optimizer.tell(trial, value, cost=cost_at(trial["x"]) if costs_reported else None)
    optimizer.save(tmp_path / f"{costs_reported}.json")
    return optimizer


@pytest.mark.thorough
def test_a_search_with_costs_is_cheaper(tmp_path):
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
    with raises_line(ConfigError, "budget > 0 must hold, but got budget=0.0"):
        EngineConfig(budget=0.0)


def past_costs(sign=1.0):
    """Three studies in different regions, whose levels fall where costs rise."""
    random = np.random.default_rng(3)
    tasks = {}
    for s in range(3):
        x, y = (s + random.random(20) * 1.5) / 3.5, random.random(20)
        costs = 10.0 ** (3 - 2 * s) * cost_at(sign * x)
        tasks[str(s)] = [Evaluated({"x": a, "y": b}, a + b, c) for a, b, c in zip(x, y, costs, strict=True)]
    return past_of(SPACE, tasks, direction="minimize")


@pytest.mark.parametrize(("sign", "n"), [(1.0, 1), (1.0, 3), (-1.0, 20)])
def test_past_studies_teach_relative_costs(sign, n):
    past = keep_studies(past_costs(sign).search_space(), jax.random.key(0))
    model = learn_past_cost(SPACE.layout, past, np.float32)
    points = np.random.default_rng(4).random((n, 2))
    model = learn_cost(points, 7.0 * cost_at(points[:, 0]), past=model)
    at = np.array([[0.1, 0.5], [0.5, 0.2], [0.9, 0.8]], np.float32)
    np.testing.assert_allclose(np.diff(np.asarray(model.log_weight(at))), -1.2, atol=0.05)


def test_a_surrogate_keeps_costs(tmp_path, registries):
    surrogate = Surrogate.fit(past_costs(), method=TaskMeans(), quiet=True)
    surrogate.save(tmp_path / "one")
    again = Surrogate.load(tmp_path / "one")
    rows = again.past_in(SPACE).tasks["0"]
    np.testing.assert_allclose(rows.costs, 1000.0 * cost_at(rows.X[:, 0]), rtol=1e-5)

    def next_after(surrogate, cost):
        optimizer = Optimizer(SPACE, surrogate, seed=0)
        for _ in range(2):
            optimizer.tell(optimizer.ask(), 1.0 - len(optimizer.trials), cost=cost)
        return optimizer.ask().params

    assert next_after(again, 1.0) == next_after(surrogate, 1.0) != next_after(surrogate, None)
    assert next_after(replace(surrogate, studies=None), 1.0) == next_after(surrogate, None)
