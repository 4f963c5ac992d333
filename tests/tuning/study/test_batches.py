"""Batches: configurations that differ, several of them from one fit of the method."""

import numpy as np
import pytest

from dre_jax.tuning import Categorical, EngineConfig, Float, Int, Optimizer, Space, Surrogate
from dre_jax.tuning.engine.engine import Engine
from tests.known_methods import RISING

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "n": Int(1, 100)})


@pytest.fixture
def proposals(monkeypatch):
    """Numbers of pending configurations, by suggestion."""
    calls = []
    propose = Engine.propose

    def record(self, trials, *, pending, **options):
        calls.append(len(pending))
        return propose(self, trials, pending=list(pending), **options)

    monkeypatch.setattr(Engine, "propose", record)
    return calls


def study(n_trials, space=SPACE):
    """With trials, and a method whose values are the same everywhere."""
    optimizer = Optimizer(space, config=EngineConfig(method="random"))
    for trial in optimizer.ask(n_trials):
        optimizer.tell(trial, float(trial.number))
    return optimizer


@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, [0]), (10, [*range(10)]), (11, [0, 2, 4, 6, 8, 10]), (50, [*range(0, 50, 5)]), (23, [*range(0, 23, 3)])],
)
def test_a_batch_of_any_size_has_ten_fits_at_most(proposals, n, expected):
    optimizer = study(6)
    proposals.clear()
    assert len(optimizer.ask(n)) == n
    assert proposals == expected


def test_configurations_of_one_fit_are_apart(proposals):
    optimizer = study(6)
    batch = [SPACE.encode(trial.params) for trial in optimizer.ask(60)]
    for start in range(0, 60, 6):
        group = np.array(batch[start : start + 6])
        distances = np.abs(group[:, None] - group[None]).max(axis=2)
        assert distances[~np.eye(6, dtype=bool)].min() > 0.1
    assert len({row.tobytes() for row in batch}) == 60


def test_a_batch_after_enqueued_values_and_before_any_value(proposals):
    """Enqueued values come first, one by one; without values there is no fit, so the points of a design follow."""
    optimizer = Optimizer(SPACE, config=EngineConfig(method="random"))
    optimizer.enqueue({"x": 0.25})
    optimizer.enqueue({"x": 0.25, "y": 0.5, "n": 3})  # complete, so that nothing is suggested
    trials = optimizer.ask(20)
    assert [trial["x"] for trial in trials[:2]] == [0.25, 0.25]
    assert len({tuple(trial.params.items()) for trial in trials}) == 20
    assert proposals == [0, *range(2, 20)]


def test_draws_are_of_single_trials(proposals):
    """Thompson sampling draws a function for each trial."""
    surrogate = Surrogate(SPACE, "rising", RISING, None)  # whose draws are its values
    optimizer = Optimizer(SPACE, surrogate, config=EngineConfig(pending_strategy="draw"))
    for trial in optimizer.ask(5):
        optimizer.tell(trial, float(trial.number))
    proposals.clear()
    optimizer.ask(12)
    assert proposals == [*range(12)]


def test_a_batch_of_a_small_space_has_all_of_it():
    optimizer = study(4, Space({"k": Categorical(["a", "b", "c", "d", "e"]), "n": Int(1, 6)}))
    seen = [trial.params for trial in (*optimizer.trials, *optimizer.ask(26))]
    assert len({tuple(params.items()) for params in seen}) == 30
