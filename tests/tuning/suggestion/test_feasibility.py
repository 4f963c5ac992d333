"""Suggestions where trials fail or break constraints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm, zscore

from dre_jax.tuning import EngineConfig, Float, Optimizer, Space, Surrogate
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.suggestion.feasibility import fit_feasibility
from dre_jax.tuning.suggestion.outcomes import FIT_TRIALS, outcomes_of
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.trials.objectives import objectives_of
from dre_jax.tuning.trials.responses import capped_responses
from tests.gp.test_classification import log_probability
from tests.known_methods import RISING
from tests.known_trials import complete_trial, failed_trials
from tests.oracles import fitted_process

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def rising(space=SQUARE, **options):
    return Engine(space, objectives_of("maximize"), Surrogate(space, "rising", RISING, None), **options)


def failing_right_half(n, space=SQUARE, seed=0):
    """Trials, complete where x is below a half; the others failed."""
    rng = np.random.default_rng(seed)
    points = [space.params(point) for point in rng.random((n, len(space)))]
    complete = [complete_trial(p, p["x"]) for p in points if p["x"] < 0.5]
    return complete, failed_trials([p for p in points if p["x"] >= 0.5])


def edge(optimizer, n):
    """Returns whether the trials of a loss that improves up to where all fail have failed."""
    optimizer.optimize(lambda p: np.nan if p["x"] > 0.5 else 0.3 * (p["y"] - 0.3) ** 2 - p["x"], n)
    return [trial.state == "failed" for trial in optimizer.trials]


@pytest.mark.slow
def test_weights_are_those_of_a_reference():
    """The classifier and the processes of constraints with the fitted hyperparameters, by NumPy and SciPy."""
    rng = np.random.default_rng(2)
    points, failed, new = rng.random((20, 2)), rng.random((9, 2)) * 0.5 + 0.5, rng.random((30, 2))
    constraints = np.column_stack([points.sum(axis=1) - 0.8, 1e6 * (points[:, 0] - 0.4) ** 3])
    constraints[3, 1] = np.nan
    with jax.enable_x64(True):
        counts = np.int32(20), np.int32(0), failed, np.int32(9)
        state = StudyState(points, -points[:, 0], *counts, constraints=constraints)
        outcomes = outcomes_of(Engine(SQUARE).study_config, state, 64)
        model = fit_feasibility(SQUARE.layout, jax.device_put(outcomes))
        result = np.asarray(jax.jit(type(model).log_weight)(model, jnp.asarray(new)))
    rows = np.asarray(model.x)[: len(points) + len(failed)]
    logs = np.append(model.success.params.log_length, model.success.params.log_scale)
    labels = np.where(np.isin(rows[:, 0], points[:, 0]), 1.0, -1.0)
    success = log_probability(logs, rows, labels, new)
    expected = success + 3.0 * np.minimum(success - np.log(0.5), 0.0)
    for k, constraint in enumerate(constraints.T):
        x, c = points[np.isfinite(constraint)], constraint[np.isfinite(constraint)]
        values = np.arcsinh(c / np.median(np.abs(c)))
        process = fitted_process(jax.tree.map(lambda a, k=k: a[k], model.processes), x, zscore(values))
        mean, deviation = process.predict(new, return_std=True)
        expected += norm.logcdf(-(values.mean() / values.std() + mean) / np.sqrt(deviation**2 + process.alpha))
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
def test_a_search_stays_where_trials_succeed():
    """Three in four fail without a model."""
    failed = edge(Optimizer(SQUARE, seed=0), 20)
    without = edge(Optimizer(SQUARE, seed=0, config=EngineConfig(failure_model=False)), 20)
    assert sum(failed) <= 12
    assert sum(without) >= 14


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["mean", "draw"])
def test_values_of_any_scale_are_weighted(strategy):
    observed, failed = failing_right_half(24)
    engine = rising(config=EngineConfig(pending_strategy=strategy))
    assert 0.3 < engine.propose([*observed, *failed], number=24).params["x"] < 0.6
    assert rising().propose(observed, number=24).params["x"] > 0.9


def test_nothing_changes_without_failures():
    """Neither picks nor programs."""
    observed, _ = failing_right_half(24)
    before = fit_feasibility._cache_size()
    engines = [rising(config=EngineConfig(failure_model=on)) for on in (True, False)]
    with_model, without = (e.propose(observed, number=24, pending=[{"x": 0.9, "y": 0.1}]) for e in engines)
    assert with_model.params == without.params
    assert fit_feasibility._cache_size() == before


@pytest.mark.slow
def test_more_trials_than_the_model_gets():
    observed, failed = failing_right_half(150)
    assert len(failed) > FIT_TRIALS
    engine = rising(config=EngineConfig(max_history=64))
    assert 0.4 < engine.propose([*observed, *failed], number=150).params["x"] < 0.6


def test_improvements_are_over_the_best_feasible_trial():
    responses = np.array([5.0, 1.0, 3.0, 2.0, np.inf, -np.inf])
    feasible = [False, True, True, False, False, True]
    capped = capped_responses(responses, feasible)
    assert np.argmax(capped) == 2
    np.testing.assert_allclose(capped, [3.0, 1.0, 3.0, 2.0, 3.0, -np.inf])
    for unchanged in ([True] * 6, [False] * 6):
        np.testing.assert_array_equal(capped_responses(responses, unchanged), responses)


def test_outcomes_of_a_padded_program_are_those_of_the_host():
    """With pending trials before any is feasible, failures, unknown constraints, and more trials than slots."""
    rng = np.random.default_rng(5)
    config = Engine(SQUARE).study_config
    compiled = jax.jit(lambda state: outcomes_of(config, state, 64))
    for n, n_pending, n_failed, violated in ((6, 0, 3, 0.5), (6, 4, 0, 2.0), (0, 0, 5, 0.5), (70, 0, 30, 0.5)):
        points, failures = rng.random((n + n_pending, 2)), rng.random((n_failed, 2))
        constraints = np.where(rng.random((n, 2)) < 0.2, np.nan, rng.random((n, 2)) - 1.0 + violated)
        responses = rng.random(n)

        def padded(slots, n_slots, points=points, failures=failures, constraints=constraints, responses=responses):
            rows = ((0, slots - len(points)), (0, 0))
            return StudyState(
                np.pad(points, rows, constant_values=0.3),
                np.pad(responses, (0, slots - len(responses)), constant_values=9.0),
                np.int32(len(responses)),
                np.int32(len(points) - len(responses)),
                np.pad(failures, ((0, n_slots - len(failures)), (0, 0)), constant_values=0.3),
                np.int32(len(failures)),
                constraints=np.pad(constraints, ((0, slots - len(constraints)), (0, 0)), constant_values=-1.0),
            )

        with jax.enable_x64(True):
            host, program = outcomes_of(config, padded(128, 64), 64), compiled(padded(96, 40))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), host, program)
        assert bool(host.decides) == (not (constraints <= 0).all(axis=1).any())


@pytest.mark.slow
def test_constraints_and_failures_combine():
    """Values rise with x; a constraint holds below 0.6, another above 0.4 of y, and beyond 0.7 of y all fails."""
    rng = np.random.default_rng(0)
    evaluated = [SQUARE.params(point) for point in rng.random((60, 2))]
    observed = [
        complete_trial(p, p["x"], constraints={"a": p["x"] - 0.6, "b": 1e3 * (0.4 - p["y"])})
        for p in evaluated
        if p["y"] < 0.7
    ]
    failed = failed_trials([p for p in evaluated if p["y"] >= 0.7])
    result = rising().propose([*observed, *failed], number=60).params
    assert 0.3 < result["x"] < 0.65
    assert 0.35 < result["y"] < 0.75


def test_before_the_first_feasible_trial():
    """The method does not matter: the search is where the constraint falls."""
    observed = [complete_trial({"x": x, "y": 0.5}, x, constraints={"c": x + 0.1}) for x in np.linspace(0.3, 1.0, 8)]
    first = rising().propose(observed, number=8).params
    assert first["x"] < 0.2
    second = rising().propose(observed, number=9, pending=[first]).params
    assert abs(second["y"] - first["y"]) > 0.05
