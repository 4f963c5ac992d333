"""Costs, standard errors and the end of a search in studies of Optuna, as `Optimizer` has them."""

import math

import numpy as np
import optuna
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import find
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space, Surrogate, from_studies
from dre_jax.tuning.optuna import DRESampler, StopWhenGainBelow, report_cost, report_stderr, to_study
from tests.error_messages import error_table, raises_line

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
GP = EngineConfig(method="gp")


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def suggested(trial):
    return {name: trial.suggest_float(name, 0.0, 1.0) for name in SPACE}


def loss(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def cost(params):
    return math.exp(4.0 * params["x"])


def study_of(directions=None, **options):
    sampler = DRESampler(SPACE, seed=0, config=options.pop("config", GP), **options)
    return optuna.create_study(sampler=sampler, directions=directions)


@pytest.mark.slow
def test_costs_and_standard_errors_make_the_suggestions_of_an_optimizer():
    """The same trials, each told to both; the seventh fails, and its cost counts."""
    config = EngineConfig(method="gp", budget=400.0)
    optimizer, study = Optimizer(SPACE, seed=0, config=config), study_of(config=config)
    for i in range(14):
        own, trial = optimizer.ask(), study.ask()
        assert suggested(trial) == own.params
        value, price, error = loss(own.params), cost(own.params), 0.01 * (i % 3)
        report_cost(trial, price)
        if i == 7:
            optimizer.tell_failed(own, cost=price)
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        report_stderr(trial, error)
        optimizer.tell(own, value, cost=price, stderr=error)
        study.tell(trial, value)
    assert study.trials[3].user_attrs == {"dre_jax:cost": optimizer.trials[3].cost, "dre_jax:stderr": 0.0}


@pytest.mark.parametrize("reported", ["cost", "stderr"])
def test_a_report_changes_suggestions(reported):
    """Otherwise the test above would say nothing."""
    suggestions = []
    for reports in (False, True):
        study = study_of()
        for i in range(12):
            params = suggested(trial := study.ask())
            if reports and reported == "cost":
                report_cost(trial, cost(params))
            elif reports:
                report_stderr(trial, 0.2 * (i % 2))
            study.tell(trial, loss(params))
        suggestions.append(suggested(study.ask()))
    assert suggestions[0] != suggestions[1]


def test_a_study_ends_with_an_optimizer():
    """The default method: after the same trial, for several thresholds, and never without the callback."""
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.optimize(lambda trial: 10.0 * loss(trial.params), 60, stop_when_gain_below=0.05)
    study = study_of(config=None)
    study.optimize(lambda trial: 10.0 * loss(suggested(trial)), 60, callbacks=[StopWhenGainBelow(0.05)])
    assert 12 < len(optimizer.trials) < 60
    assert [trial.params for trial in study.trials] == [trial.params for trial in optimizer.trials]
    study.optimize(lambda trial: 10.0 * loss(suggested(trial)), 60, callbacks=[StopWhenGainBelow(0.05)])
    assert len(study.trials) == len(optimizer.trials) + 1, "a callback is called after a trial"


@pytest.mark.parametrize(
    ("improvements", "values", "stops"),
    [
        ([0.01] * 10, [1.0] * 12, True),
        ([0.01] * 9, [1.0] * 12, False),
        ([0.01] * 9 + [0.2], [1.0] * 12, False),
        ([None] + [0.01] * 9, [1.0] * 12, False),
        ([0.2] + [0.01] * 10, [1.0] * 12, True),
        ([0.01] * 10, [1.0] * 11 + [0.5], False),
        ([0.01] * 10, [1.0] * 11 + [0.95], True),
        ([0.01] * 10, [1.0, 0.4] + [0.5] * 10, True),
        ([0.01] * 10, [1.0, 1.0, None] + [1.0] * 9, True),
        ([0.01] * 10, [math.inf] * 12, True),
    ],
)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_rule_by_hand(improvements, values, stops, direction):
    """Of twelve trials, the threshold is 0.1. A value that is None is a failed trial."""
    sign = 1.0 if direction == "minimize" else -1.0
    study = optuna.create_study(direction=direction, sampler=DRESampler(SPACE, seed=0))
    attributes = [None] * (12 - len(improvements)) + improvements
    for improvement, value in zip(attributes, values, strict=True):
        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        system_attrs = {} if improvement is None else {"dre:improvement": improvement}
        value = None if value is None else sign * value
        study.add_trial(optuna.create_trial(state=state, value=value, system_attrs=system_attrs))
    study.enqueue_trial({"x": 0.5})
    stopped = []
    study.stop = lambda: stopped.append(True)
    StopWhenGainBelow(0.1)(study, study.trials[-2])
    assert bool(stopped) is stops


def test_a_trial_that_violates_a_constraint_is_no_gain():
    study = study_of()
    for i in range(12):
        state, attributes = optuna.trial.TrialState.COMPLETE, {"dre:improvement": 0.01}
        limits = {"memory": 1.0 if i == 11 else -1.0}
        value = 0.0 if i == 11 else 1.0
        study.add_trial(optuna.create_trial(state=state, value=value, system_attrs=attributes, constraints=limits))
    stopped = []
    study.stop = lambda: stopped.append(True)
    StopWhenGainBelow(0.1)(study, study.trials[-1])
    assert stopped


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_sampler_under_another_one_is_found():
    study = study_of()
    study.sampler = optuna.samplers.PartialFixedSampler({"x": 0.5}, study.sampler)
    study.optimize(lambda trial: loss(suggested(trial)), 2, callbacks=[StopWhenGainBelow(0.1)])
    assert len(study.trials) == 2


def test_errors_of_the_callback():
    def run(study, objective=lambda trial: loss(suggested(trial))):
        study.optimize(objective, 1, callbacks=[StopWhenGainBelow(0.1)])

    with raises_line(ConfigError, "with a DRESampler, but got RandomSampler"):
        run(optuna.create_study(sampler=optuna.samplers.RandomSampler()))
    with raises_line(ConfigError, "a study of one objective"):
        run(study_of(directions=["minimize"] * 2), lambda trial: (suggested(trial)["x"], 0.0))
    with raises_line(ConfigError, "an expected gain needs hedged-prior, gp-mixture or gp"):
        run(study_of(surrogate=Surrogate(SPACE, "random", find("random").make(), None)))


def test_a_method_without_noise_refuses_standard_errors():
    study = study_of(surrogate=Surrogate(SPACE, "random", find("random").make(), None))

    def objective(trial):
        report_stderr(trial, 0.1)
        return loss(suggested(trial))

    with raises_line(ConfigError, "standard errors need a method that uses them"):
        study.optimize(objective, 4)


def test_an_exported_study_has_the_costs_that_past_tasks_read():
    optimizer = Optimizer(SPACE, seed=0)
    for params in np.random.default_rng(0).random((6, 2)).tolist():
        point = dict(zip(SPACE, params, strict=True))
        optimizer.add(point, loss(point), cost=cost(point), stderr=0.1)
    study = to_study(optimizer, name="old")
    assert [trial.user_attrs["dre_jax:cost"] for trial in study.trials] == [one.cost for one in optimizer.trials]
    study.add_trial(
        optuna.create_trial(
            params={"x": 0.5, "y": 0.5},
            distributions={name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in SPACE},
            value=9.0,
        )
    )
    costs = from_studies([study], SPACE).tasks["old"].costs
    np.testing.assert_allclose(costs[:6], [one.cost for one in optimizer.trials])
    assert math.isnan(costs[6]), "a duration is no cost of the same unit"


def report(function, value):
    function(study_of().ask(), value)


test_reports = error_table(
    DataError,
    (lambda: report(report_cost, 0.0), "the cost of a trial must be finite and positive, but got 0.0"),
    (lambda: report(report_cost, math.nan), "finite and positive"),
    (lambda: report(report_cost, "cheap"), "must be a number"),
    (lambda: report(report_stderr, -1.0), "standard error of a value must be finite and at least 0"),
)
test_threshold = error_table(ConfigError, (lambda: StopWhenGainBelow(0.0), "must be positive"))
