"""A program that has NumPy raise floating-point errors gets the same results: of the tuner, costs, several objectives,
predictions, surrogates and learning curves."""

import math

import numpy as np
import pytest

from dre_jax.functions.optimize import optimize_functions
from dre_jax.tuning import Evaluated, Float, Optimizer, Space, Surrogate, past_of
from dre_jax.tuning.study.optimizers import Optimizers

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(1e-8, 1.0, log=True)})
EXTREMES = [5e-324, 1e300, 0.5, -1e300, math.inf, 1e-310, 3.0, 1e200]


def loss(params):
    return (params["x"] - 0.3) ** 2 + 0.01 * math.log10(params["y"]) ** 2


def searched(value, n=8, **options):
    """Returns the study of n trials; ``value`` returns the arguments of `tell` by the number and the configuration."""
    optimizer = Optimizer(SPACE, seed=0, **options)
    for i in range(n):
        trial = optimizer.ask()
        values, more = value(i, trial.params)
        optimizer.tell(trial, values, **more)
    return optimizer


def points(optimizer):
    return [trial.params for trial in optimizer.trials]


def extreme_values():
    return points(searched(lambda i, params: (EXTREMES[i], {})))


def tiny_values():
    return points(searched(lambda i, params: (1e-310 * loss(params), {})))


def standard_errors_costs_and_constraints():
    def value(i, params):
        constraints = {"c": 1e200 * (params["x"] - 0.5)}
        stderr, cost = [0.0, 1e-300, 1e300, 0.1][i % 4], [1e-300, 1e300, 1.0, 5.0][i % 4]
        return loss(params), {"stderr": stderr, "cost": cost, "constraints": constraints}

    return points(searched(value))


def several_objectives():
    directions = {"a": "minimize", "b": "maximize"}
    return points(searched(lambda i, params: ({"a": EXTREMES[i], "b": 1e-310 * i}, {}), directions=directions))


def predictions():
    optimizer = searched(lambda i, params: (EXTREMES[i] * loss(params), {}), n=6)
    prediction = optimizer.predict(points(optimizer), noise=True)
    return [*prediction, prediction.quantiles]


def learning_curves():
    optimizer = Optimizer(SPACE, seed=0)
    decisions = []
    for i in range(6):
        trial = optimizer.ask()
        for step in range(1, 9):
            value = EXTREMES[i] * math.exp(-step / 3)
            trial.report(value, step)
            decisions.append(trial.should_stop())
        optimizer.tell(trial, value)
    return decisions


def many_studies():
    optimizers = Optimizers(SPACE, 2, method="random")  # a method computes inside of the program
    for i in range(6):
        trials = optimizers.ask()
        optimizers.tell(trials, [EXTREMES[i] if abs(EXTREMES[i]) < 1e30 else 1e30, 1.0 + i])
    return [trial.params for trial in trials]


def tiny_bowl(centre, x):
    return 1e-30 * ((x - centre) ** 2).sum()


def functions():
    searches = optimize_functions(tiny_bowl, np.array([0.2]), 2, n_trials=6, method="random")
    return [searches.points, searches.values]


def surrogate():
    rng = np.random.default_rng(0)
    studies = {
        str(s): [Evaluated(params, 1e-300 * loss(params)) for params in map(SPACE.params, rng.random((8, 2)))]
        for s in range(3)
    }
    fitted = Surrogate.fit(past_of(SPACE, studies, direction="minimize"), method="rgpe", quiet=True)
    optimizer = searched(lambda i, params: (1e-300 * loss(params), {}), n=6)
    return [study.agreement for study in fitted.sources(optimizer.trials).studies]


CASES = [
    extreme_values,
    tiny_values,
    standard_errors_costs_and_constraints,
    several_objectives,
    predictions,
    learning_curves,
    many_studies,
    functions,
    surrogate,
]


@pytest.mark.slow
@pytest.mark.parametrize("compute", CASES)
def test_results_do_not_depend_on_the_callers_setting(compute):
    expected = compute()
    with np.errstate(all="raise"):
        result = compute()
        with pytest.raises(FloatingPointError):
            _ = np.float64(1e-300) ** 2
    for given, other in zip(result, expected, strict=True):
        np.testing.assert_equal(given, other)
