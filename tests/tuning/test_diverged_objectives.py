"""Trials of which one of several objectives is infinite or huge do not turn the search into a random one."""

import math

import numpy as np
import optuna
import pytest

from dre_jax.tuning import Float, Optimizer, Space
from dre_jax.tuning.objectives.front import has_diverged
from dre_jax.tuning.optuna import DRESampler

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
DIVERGED = {4: (math.inf, 0), 9: (math.inf, 0), 12: (1e200, 1)}
"""By the number of the trial: a value, and the objective."""


def losses(number, x, y):
    """Two objectives to minimise, whose front has y = 0."""
    values = [x**2 + y, (x - 1.0) ** 2 + y]
    if number in DIVERGED:
        value, objective = DIVERGED[number]
        values[objective] = value
    return values


def by_optimizer(seed):
    optimizer = Optimizer(SQUARE, directions={"a": "minimize", "b": "minimize"}, seed=seed)
    optimizer.optimize(lambda trial: losses(trial.number, trial["x"], trial["y"]), 20)
    assert all(trial.state == "complete" for trial in optimizer.trials)
    return [trial["y"] for trial in optimizer.trials]


def by_sampler(seed):
    study = optuna.create_study(directions=["minimize"] * 2, sampler=DRESampler(SQUARE, seed=seed))

    def objective(trial):
        return losses(trial.number, trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0))

    study.optimize(objective, 20)
    return [trial.params["y"] for trial in study.trials]


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.parametrize("search", [by_optimizer, by_sampler])
def test_diverged_trials_are_not_modelled(search):
    """Of the last trials, a random search has a mean y of 0.5, and this one 0.00 without diverged trials."""
    assert np.mean(search(0)[13:]) < 0.1


def test_values_have_diverged_far_below_the_others_or_at_infinity():
    values = np.array([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0], [-1e3, 2.0], [-1e6, 2.0], [2.0, -np.inf], [np.inf, 1.0]])
    where = np.ones(7, bool)
    assert has_diverged(values, where).tolist() == [False, False, False, False, True, True, False]
    assert not has_diverged(values, np.arange(7) >= 5).any()
    assert not has_diverged(values, ~where).any()
    assert has_diverged(values, np.arange(7) != 4).tolist() == [False, False, False, False, False, True, False]
