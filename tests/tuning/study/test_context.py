"""Trials with features of their own: suggestions for a machine, learned from all machines."""

import jax
import numpy as np
import pytest

from dre_jax.methods.registry import find
from dre_jax.search.history import make_history
from dre_jax.tuning import Categorical, EngineConfig, Fidelity, Float, Optimizer
from tests.error_messages import raises_line

SPACE = {"x": Float(0.0, 1.0), "machine": Categorical(["a", "b"])}
GP = EngineConfig(method="gp")


def on_both_machines() -> Optimizer:
    """A study whose machine "b" is always worse than "a"."""
    optimizer = Optimizer(SPACE, seed=0, config=GP)
    for i in range(8):
        machine = "ab"[i % 2]
        optimizer.add({"x": i / 7, "machine": machine}, (i / 7 - 0.4) ** 2 + 5.0 * (machine == "b"))
    return optimizer


@pytest.mark.parametrize("name", ["gp", pytest.param("gp-mixture", marks=pytest.mark.slow)])
def test_the_incumbent_is_the_best_of_the_comparable_trials(name):
    method, (x, y) = find(name).make(), np.random.default_rng(0).random((2, 8, 1))
    order = np.argsort(y[:, 0])
    fit, history = jax.jit(method.fit_history), make_history(x, y)
    responses = np.asarray(method.response_transform(fit(None, history, jax.random.key(0))).apply(history.response))

    def incumbent(rows):
        comparable = history._replace(comparable=np.isin(np.arange(8), rows))
        return float(fit(None, comparable, jax.random.key(0)).incumbent)

    for n in range(1, 9):
        assert incumbent(order[:n]) == pytest.approx(responses[order[n - 1]], abs=1e-5)
    assert incumbent([]) == -np.inf


@pytest.mark.slow
def test_the_next_trial_improves_on_those_of_its_machine():
    """The best of machine "a" is out of reach of "b"."""
    optimizer = on_both_machines()
    trial = optimizer.ask(features={"machine": "b"})
    assert trial["machine"] == "b"
    assert abs(trial["x"] - 0.4) < 0.2
    gain = optimizer._improvements[-1]
    rest = on_both_machines()
    rest.enqueue({"machine": "b"})
    rest.ask()
    assert gain > 100.0 * rest._improvements[-1]
    batch = optimizer.ask(2, features={"machine": "a"})
    assert [other["machine"] for other in batch] == ["a", "a"]
    assert batch[0].params != batch[1].params


@pytest.mark.slow
def test_values_that_another_thread_enqueues_meanwhile_wait():
    optimizer = on_both_machines()
    context = optimizer._context({"machine": "b"})
    optimizer.enqueue({"x": 0.5, "machine": "a"})
    [trial] = optimizer._ask(None, lambda: False, context)
    assert trial["machine"] == "b"
    assert optimizer.ask().params == {"x": 0.5, "machine": "a"}


def test_features_that_a_study_cannot_take():
    optimizer = on_both_machines()
    with raises_line(Exception, "hyperparameters are x, machine, but got 'gpu'"):
        optimizer.ask(features={"gpu": "h100"})
    optimizer.enqueue({"x": 0.5})
    with raises_line(Exception, "features of a trial need an empty queue, but 1 are enqueued"):
        optimizer.ask(features={"machine": "a"})
    several = Optimizer(SPACE, directions={"loss": "minimize", "time": "minimize"})
    pausing = Optimizer(SPACE, fidelity=Fidelity("epochs", 1, 8))
    for study, what in ((several, "several objectives"), (pausing, "a fidelity")):
        with raises_line(Exception, f"a study with {what} takes no features of single trials"):
            study.ask(features={"machine": "a"})
