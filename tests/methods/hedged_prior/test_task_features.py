"""Features of tasks: standardised, as a line through the best configurations, and in the recommended method."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dre_jax.data import SearchSpace, Task
from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig
from dre_jax.methods.hedged_prior.task_features import (
    first_slopes,
    jackknife_errors,
    standardise_features,
    trust_slopes,
)
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.search import make_history
from dre_jax.search.history import Candidates

CONFIG = LearnedPriorConfig(trend=(8,), layers=(4, 4), members=1)
TRAINING = PriorTraining(tasks=4, rows=8, folds=3, learning_rate=0.01, patience=1)
METHOD = HedgedPrior(prior=CONFIG, training=TRAINING)
KEY = jax.random.key(0)
GRID = np.stack(np.meshgrid(*[np.linspace(0, 1, 21, dtype=np.float32)] * 2), axis=-1).reshape(-1, 2)
DECADES, SLOPE = np.array([1.0, 1.5, 2.0, 2.5, 3.0, 3.5]), 0.15


def moving_peaks(decades=DECADES, rows=12):
    """Returns tasks whose peak moves by `SLOPE` in the first column with each unit of the feature."""
    rng, tasks = np.random.default_rng(0), {}
    for decade in decades:
        x = rng.random((rows, 2), np.float32)
        y = -((x[:, 0] - 0.1 - SLOPE * decade) ** 2) - 0.2 * (x[:, 1] - 0.4) ** 2
        tasks[f"{decade}"] = Task(f"{decade}", x, y.astype(float), features=np.float32([decade]))
    return tasks


def test_features_are_standardised_where_they_are_known():
    rows = [[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]
    tasks = {str(i): replace(task, features=np.float32(row)) for i, (task, row) in enumerate(named(rows))}
    values, mean, deviation = standardise_features(tasks)
    np.testing.assert_allclose(values[:, 0], (np.array([1.0, 3.0, 5.0]) - 3.0) / np.std([1.0, 3.0, 5.0]), rtol=1e-6)
    np.testing.assert_allclose(values[:, 1], [-1.0, 0.0, 1.0])
    np.testing.assert_allclose([mean, deviation], [[3.0, 4.0], [np.std([1.0, 3.0, 5.0]), 2.0]])


def named(rows):
    return zip(moving_peaks(np.arange(len(rows))).values(), rows, strict=True)


@pytest.mark.parametrize("features", [None, np.zeros(0, np.float32), np.float32([2.0]), np.float32([np.nan])])
def test_tasks_without_features_that_vary_have_none(features):
    tasks = {name: replace(task, features=features) for name, task in moving_peaks().items()}
    assert standardise_features(tasks) is None


def test_the_first_line_is_a_ridge_regression_of_the_best_configurations():
    tasks = moving_peaks()
    features = standardise_features(tasks).values
    best = np.stack([task.X[np.argsort(-task.y)[:5]].mean(axis=0) for task in tasks.values()])
    expected = Ridge(alpha=1.0).fit(features[1:], best[1:]).coef_
    np.testing.assert_allclose(first_slopes(tasks, features, [0]), expected, rtol=1e-4)


def test_columns_of_choices_do_not_move():
    tasks = {name: replace(task, X=np.round(task.X)) for name, task in moving_peaks().items()}
    assert not first_slopes(tasks, standardise_features(tasks).values).any()


def test_errors_of_a_mean_by_the_jackknife_are_those_of_the_mean():
    values = np.random.default_rng(0).normal(size=7)
    without_one = (values.sum() - values)[:, None, None] / 6.0
    expected = values.std(ddof=1) / np.sqrt(7.0)
    assert jackknife_errors(without_one, 7)[0, 0] == pytest.approx(expected)
    repeated = np.concatenate([without_one, without_one[:2]])
    assert jackknife_errors(repeated, 7)[0, 0] == pytest.approx(expected)


@pytest.fixture(scope="module")
def params():
    return METHOD.fit(SearchSpace("moving", train=moving_peaks()), KEY)


@pytest.fixture(scope="module")
def first_suggestion():
    candidates = Candidates(jnp.asarray(GRID), jnp.ones(len(GRID), bool))
    history = make_history(np.zeros((0, 2), np.float32), np.zeros(0), capacity=4)
    acquire = jax.jit(METHOD.acquire)
    return lambda params: GRID[int(jnp.argmax(acquire(params, history, candidates, KEY)))]


@pytest.mark.slow
def test_slopes_are_those_of_the_peaks(params):
    slopes, errors = METHOD.scaling_slopes(params)
    np.testing.assert_allclose(slopes[:, 0], [SLOPE, 0.0], atol=0.05)
    assert abs(slopes[0, 0]) > 3.0 * errors[0, 0]


@pytest.mark.slow
def test_the_first_suggestion_moves_with_the_features_beyond_those_of_past_tasks(params, first_suggestion):
    for decade in (2.2, 4.5, 5.0):
        suggestion = first_suggestion(METHOD.for_task(params, jnp.float32([decade])))
        assert abs(suggestion[0] - 0.1 - SLOPE * decade) < 0.11, decade


def test_a_feature_without_a_clear_slope_is_not_extrapolated(params):
    wide = jax.tree.map(lambda a: jnp.concatenate([a, a], axis=-1), params.features)
    scale = wide._replace(trust=jnp.float32([0.0, 1.0]))
    far, bound = scale.standardise(jnp.float32([900.0, 900.0])), scale.standardise(jnp.float32([3.5, 3.5]))
    np.testing.assert_allclose(far, [bound[0], (900.0 - DECADES.mean()) / DECADES.std()], rtol=1e-5)
    inside = scale.standardise(jnp.float32([2.0, 2.0]))
    np.testing.assert_allclose(inside, (2.0 - DECADES.mean()) / DECADES.std(), rtol=1e-5)


def test_trust_is_that_of_the_clearest_slope():
    slopes, errors = np.array([[0.2, 0.1], [0.0, -0.1]]), np.array([[0.1, 0.2], [0.0, 0.5]])
    np.testing.assert_allclose(trust_slopes(slopes, errors), [0.75, 0.0])


def test_a_task_of_unknown_features_is_the_mean_past_task(params, first_suggestion):
    unknown, mean = (METHOD.for_task(params, jnp.float32([a])) for a in (np.nan, DECADES.mean()))
    jax.tree.map(np.testing.assert_allclose, unknown, mean)
    jax.tree.map(np.testing.assert_array_equal, unknown, params)


@pytest.mark.slow
def test_methods_without_features_ignore_them():
    tasks = {name: replace(task, features=None) for name, task in moving_peaks(DECADES[:3]).items()}
    params = METHOD.fit(SearchSpace("without", train=tasks), KEY)
    assert METHOD.for_task(params, jnp.float32([3.0])) is params
    assert METHOD.scaling_slopes(params) is None


def test_the_second_suggestion_stays_where_the_past_promises_most(params, first_suggestion):
    of_task = METHOD.for_task(params, jnp.float32([4.5]))
    first = first_suggestion(of_task)
    is_new = (first != GRID).any(axis=1)
    history = make_history(first[None], np.zeros(1), capacity=4)
    values = jax.jit(METHOD.acquire)(of_task, history, Candidates(jnp.asarray(GRID), jnp.asarray(is_new)), KEY)
    second = GRID[int(jnp.argmax(jnp.where(is_new, values, -jnp.inf)))]
    assert np.abs(second - first).max() < 0.5, "one response has no scale, so the far corner is no better"
