"""SMAC over a table, against the same parts put together by SMAC's own facade."""

import numpy as np
import pytest

pytest.importorskip("smac", reason="the extra baselines is not installed")

from ConfigSpace import Configuration, ConfigurationSpace, Float
from smac import Scenario
from smac.facade import HyperparameterOptimizationFacade as Facade
from smac.runhistory import RunHistory

from dre_jax.methods.baselines.smac import SMAC, _Parts

COLUMNS = 4


def test_the_improvement_is_smacs():
    rng = np.random.default_rng(2)
    x, y, pending = rng.random((20, COLUMNS)), rng.random(20), rng.random((30, COLUMNS))
    np.random.seed(5)  # noqa: NPY002
    parts = _Parts(10, 0.2, COLUMNS)
    parts.improvement(x[:12], y[:12], pending)  # what was told before is remembered
    result = parts.improvement(x, y, pending)

    space = ConfigurationSpace()
    space.add([Float(f"x{i}", (0.0, 1.0)) for i in range(COLUMNS)])
    scenario = Scenario(space, deterministic=True, seed=parts._scenario.seed)
    history = RunHistory()
    for i, (row, response) in enumerate(zip(x, y, strict=True)):
        history.add(Configuration(space, vector=row), cost=1.0 - response, seed=i)
    encoder = Facade.get_runhistory_encoder(scenario)
    encoder.runhistory = history
    facts, costs = encoder.transform()
    forest = Facade.get_model(scenario).train(facts, costs)
    acquisition = Facade.get_acquisition_function(scenario)
    best = min(float(forest.predict_marginalized(row[None])[0][0, 0]) for row in facts)
    acquisition.update(model=forest, eta=best, num_data=len(facts))
    expected = acquisition([Configuration(space, vector=row) for row in pending]).reshape(-1)
    np.testing.assert_allclose(result, expected, rtol=1e-9)
    assert len(set(result)) > 5


def test_a_fifth_of_the_suggestions_is_random(monkeypatch):
    rng = np.random.default_rng(2)
    x, y, pending = rng.random((5, COLUMNS)), rng.random(5), rng.random((300, COLUMNS))
    monkeypatch.setattr(_Parts, "improvement", lambda self, *args: np.arange(300.0))
    np.random.seed(0)  # noqa: NPY002
    method = SMAC()
    by_value = sum(method.observe_and_suggest(x, y, pending) == 299 for _ in range(400))
    assert 290 <= by_value <= 350
