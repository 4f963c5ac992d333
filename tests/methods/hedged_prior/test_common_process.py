"""The model of few past tasks against scipy and joint Gaussian processes in NumPy, and when it is used."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from dre_jax.data import SearchSpace
from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.methods.hedged_prior.common_process import (
    CommonProcessConfig,
    common_prior,
    fit_past_tasks,
    past_trials,
)
from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.search import make_history
from tests.methods.conftest import hill
from tests.oracles import matern52

# Reversed tasks are mirror images on this scale.
CONFIG = LearnedPriorConfig(trend=(8,), layers=(4, 4), members=1, response_scale="standardised")
TRAINING = PriorTraining(tasks=4, rows=12, folds=3, learning_rate=0.01, patience=2)
METHOD = HedgedPrior(prior=CONFIG, training=TRAINING)
GENERIC = generic_prior(2)


def hills(n_tasks, rows, *, reverse=False):
    tasks = [hill(0.02 * (i % 3), rows, i) for i in range(n_tasks)]
    return {f"{i}": replace(t, y=-t.y) if reverse and i % 2 else t for i, t in enumerate(tasks)}


def log_posterior(vector, trials):
    """Returns the log posterior density of hyperparameters up to a constant, in float64."""
    common, own, variances, noise = vector[:2], vector[2:4], vector[4:6], vector[6]
    x, y, task = (np.asarray(a) for a in trials[:3])
    x, same = x.astype(float), task[:, None] == task
    covariance = np.exp(variances[0]) * matern52(x / np.exp(common)) + np.exp(noise) * np.eye(len(x))
    covariance += same * (1.0 + np.exp(variances[1]) * matern52(x / np.exp(own)))
    squares = [(lengths - GENERIC.mean) / GENERIC.deviation for lengths in (common, own)]
    squares += [(variances - [-0.7, -1.2]) / 1.5, [(noise - GENERIC.noise_mean) / GENERIC.noise_deviation]]
    density = multivariate_normal(cov=covariance, allow_singular=True).logpdf(y.astype(float))
    return density - 0.5 * sum(np.square(np.asarray(a, float)).sum() for a in squares)


@pytest.fixture(scope="module")
def fit():
    return fit_past_tasks(CommonProcessConfig(), hills(3, 12), GENERIC, "standardised")


@pytest.mark.slow
def test_hyperparameters_have_the_density_that_scipy_reaches(fit):
    vector = np.concatenate([np.ravel(a) for a in jax.tree.leaves(fit.params)]).astype(float)
    bounds = [(-3.0, 4.0)] * 4 + [(-6.0, 2.0)] * 2 + [(-7.0, 0.0)]
    starts = (np.array([*GENERIC.mean, *GENERIC.mean, -0.7, -1.2, noise], float) for noise in (-6.0, -2.0))
    best = max(-minimize(lambda v: -log_posterior(v, fit.trials), s, bounds=bounds).fun for s in starts)
    assert log_posterior(vector, fit.trials) > best - 0.05


def test_long_tasks_keep_their_best_trials_and_the_scale_of_all():
    tasks = hills(4, 60)
    trials = past_trials(tasks, 80, "standardised")
    assert np.bincount(trials.task).tolist() == [20] * 4
    for number, task in enumerate(tasks.values()):
        y = np.sort((task.y - task.y.mean()) / task.y.std())
        kept = np.sort(np.asarray(trials.y)[np.asarray(trials.task) == number])
        np.testing.assert_allclose(kept[-5:], y[-5:], rtol=1e-5)
        assert np.abs(y[:, None] - kept[None, :]).min(axis=0).max() < 1e-5
    assert len(past_trials(tasks, 400, "standardised").y) == 240


@pytest.mark.parametrize(
    ("n_tasks", "rows", "used"), [(2, 5, False), (3, 5, True), (10, 50, True), (20, 20, True), (11, 50, False)]
)
def test_few_tasks_of_few_trials_have_a_common_process(n_tasks, rows, used):
    fit = fit_past_tasks(CommonProcessConfig(steps=1), hills(n_tasks, rows), GENERIC, "standardised")
    assert (fit is not None) == used


@pytest.fixture(scope="module")
def fits():
    """What the method learns of alike tasks, and of tasks of which every other one is reversed."""
    cases = {"alike": hills(6, 12), "reversed": hills(6, 12, reverse=True)}
    return {name: METHOD.fit(SearchSpace(name, train=tasks), jax.random.key(0)) for name, tasks in cases.items()}


@pytest.mark.slow
def test_held_out_tasks_choose_the_weight_of_the_common_process(fits):
    alike, mixed = fits["alike"], fits["reversed"]
    assert float(alike.common.log_odds) > 1.0 > float(mixed.common.log_odds)
    assert float(alike.transfer_log_odds) > float(mixed.transfer_log_odds)
    share = 1.0 / (1.0 + np.exp(-float(alike.common.log_odds)))
    reason = METHOD.explain_fit(alike)["common process"]
    assert reason == f"of 72 past trials, with {share:.2f} of the transfer probability"


@pytest.mark.slow
def test_the_weight_of_the_past_falls_if_trials_contradict_it(fits):
    task = hill(0.0, 12, 50)
    weights, fit_history = {}, jax.jit(METHOD.fit_history)
    for name, y in (("as it is", task.y), ("reversed", -task.y)):
        fitted = fit_history(fits["alike"], make_history(task.X, y), jax.random.key(0))
        weights[name] = float(METHOD.past_weight(fitted))
    assert weights["as it is"] > 0.8 > 0.2 > weights["reversed"]


def test_a_column_that_no_past_task_varies_is_ignored(fit):
    common = common_prior(CommonProcessConfig(), fit, np.array([False, True]), 0.5)
    trend = jax.jit(lambda x: jax.tree.map(lambda a: a[0], common.process).compute_features(x).trend)
    x = np.random.default_rng(0).uniform(size=(7, 2)).astype(np.float32)
    one, other = trend(x), trend(x * np.float32([1.0, 0.0]))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert np.ptp(one) > 0.1
