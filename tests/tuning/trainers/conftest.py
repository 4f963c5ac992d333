"""Trials that trainers report to."""

import pytest

from dre_jax.tuning import Fidelity, Float, Optimizer


class StoppingOptimizer(Optimizer):
    """A study that stops its trials at step 3."""

    def should_stop(self, trial):
        return 3 in self.trials[trial.number].reports


@pytest.fixture
def trial():
    """A trial that should stop after epoch 3."""
    return StoppingOptimizer({"lr": Float(0.0, 1.0)}).ask()


@pytest.fixture
def budgeted():
    """Makes trials of one study that train until a budget: `budgeted(2)`."""
    optimizer = Optimizer({"lr": Float(0.0, 1.0)}, fidelity=Fidelity("epochs", 1, 8))
    return lambda budget: optimizer.ask().with_fields(budget=budget)


@pytest.fixture
def reports_of():
    """Returns the reports of a trial so far."""
    return lambda trial: trial._study.trials[trial.number].reports
