"""Steps of learning curves in any unit: shares of a training, epochs, batches."""

import numpy as np
import optuna
import pytest

from dre_jax.errors import DataError
from dre_jax.tuning import Float, Optimizer, PastCurves
from dre_jax.tuning.curves.steps import relative_curve, step_grid
from dre_jax.tuning.optuna import DREPruner
from tests.error_messages import raises_line

N_STEPS = 20
UNITS = {"shares": 0.05, "epochs": 1, "batches": 1000, "thirds": 1 / 3}
LEVELS = np.random.default_rng(0).uniform(0.0, 1.0, 20)


def loss(trial, epoch):
    return LEVELS[trial] + np.exp(-epoch / 4) + 0.01 * np.sin(7 * trial + epoch)


def past_curves(unit):
    levels = np.linspace(0.0, 1.0, 12)
    steps = range(1, N_STEPS + 1)
    return PastCurves({"past": [{epoch * unit: -x - np.exp(-epoch / 4) for epoch in steps} for x in levels]}, True)


def stopped_trials(unit, past_unit=None, *, adds_up=False):
    """Numbers of the trials that are stopped, each with the epochs that it had."""
    past = None if past_unit is None else past_curves(past_unit)
    optimizer = Optimizer({"x": Float(0.0, 1.0)}, direction="minimize", past_curves=past)
    stopped = {}
    for number, x in enumerate(LEVELS):
        trial, step = optimizer.add_running({"x": float(x)}), 0.0
        for epoch in range(1, N_STEPS + 1):
            step = step + unit if adds_up else epoch * unit
            optimizer.report(trial, loss(number, epoch), step)
            if optimizer.should_stop(trial):
                stopped[number] = epoch
                break
        optimizer.tell(trial, loss(number, epoch))
    return stopped


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_of_steps_does_not_matter(unit):
    expected = stopped_trials(1)
    assert len(expected) >= 5
    assert int(np.argmin(LEVELS)) not in expected
    assert stopped_trials(UNITS[unit]) == expected
    assert stopped_trials(UNITS[unit], adds_up=True) == expected  # rounding is no other step


def test_nor_does_the_unit_of_past_curves():
    expected = stopped_trials(1, 1)
    assert min(expected) < 6
    assert [stopped_trials(unit, past) for unit, past in ((0.05, 1000), (1000, 0.05), (1, 1 / 3))] == [expected] * 3


@pytest.mark.usefixtures("quiet_optuna")
def test_pruner():
    def pruned(unit):
        def objective(trial):
            trial.suggest_float("x", 0.0, 1.0)
            for epoch in range(1, N_STEPS + 1):
                trial.report(loss(trial.number, epoch), epoch * unit)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return loss(trial.number, N_STEPS)

        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=DREPruner())
        study.optimize(objective, len(LEVELS))
        return {trial.number: len(trial.intermediate_values) for trial in study.trials if trial.state.name == "PRUNED"}

    assert pruned(1) == pruned(5) == pruned(1000) == stopped_trials(1)


@pytest.mark.parametrize("n_steps", [2, 20, 32, 33, 200])
def test_the_grid_has_reported_steps_alone(n_steps):
    """Of many it has at most 32: those next to a power of the share of the horizon."""
    steps = np.arange(0, n_steps + 1)
    curve = relative_curve(dict.fromkeys(steps.tolist(), 0.0), n_steps)
    expected = steps[1:]
    if n_steps > 32:
        positions = n_steps * (np.arange(1, 33) / 32) ** 1.5
        expected = np.unique(np.abs(steps[1:] - positions[:, None]).argmin(1) + 1)
    np.testing.assert_allclose(step_grid([curve]), expected / n_steps)


def test_curves_that_report_at_different_steps():
    curves = [{0.5: 1.0, 2.0: 0.5}, {4.0: 0.25, 1.0: 0.75}]
    relative = [relative_curve(curve, 4.0) for curve in curves]
    assert [list(curve.items()) for curve in relative] == [[(0.125, 1.0), (0.5, 0.5)], [(0.25, 0.75), (1.0, 0.25)]]
    np.testing.assert_array_equal(step_grid(relative), [0.125, 0.25, 0.5, 1.0])


@pytest.mark.parametrize("step", [-1.0, np.nan, np.inf])
def test_a_step_of_past_curves_that_is_none(step):
    with raises_line(DataError, f"the step of a report must be a finite number from 0, but 'a' has {step}"):
        PastCurves({"a": [{step: 0.5, 1.0: 0.25}]})
