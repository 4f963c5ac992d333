"""Moments of past tasks by the formulas of precisions, and improvements by SciPy's multivariate t."""

import jax
import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from dre_jax.data import SearchSpace, Task
from dre_jax.methods.baselines import empirical_gp
from dre_jax.methods.baselines.empirical_gp import GRID, EmpiricalGP, choose_rows, past_moments
from dre_jax.search import make_history
from tests.oracles import compressed_scores, log_improvement, matern52

METHOD = EmpiricalGP(rows=24)


def matern(a, b, length):
    scale = length * a.shape[1] ** 0.5
    return matern52(np.asarray(a, np.float64) / scale, np.asarray(b, np.float64) / scale)


def slow_moments(prior, tasks, steps):
    """EM with the posteriors of each task as sums of precisions."""
    mean, covariance = np.zeros(len(prior)), prior
    for _ in range(steps):
        precision = np.linalg.inv(covariance)
        posteriors = []
        for weights, y, errors in tasks:
            own = np.linalg.inv(precision + sum(np.outer(w, w) / e for w, e in zip(weights, errors, strict=True)))
            evidence = precision @ mean + sum(w * v / e for w, v, e in zip(weights, y, errors, strict=True))
            posteriors.append((own @ evidence, own))
        mean = sum(m for m, _ in posteriors) / len(tasks)
        scatter = sum(own + np.outer(m - mean, m - mean) for m, own in posteriors)
        covariance = (scatter + prior) / (len(tasks) + 1)
    return mean, covariance


def test_moments_by_precisions():
    rng = np.random.default_rng(0)
    anchors, xs = rng.random((9, 2)).astype(np.float32), rng.random((4, 7, 2)).astype(np.float32)
    ys, wheres = rng.normal(size=(4, 7)).astype(np.float32), rng.random((4, 7)) < 0.7
    mean, covariance, prior = past_moments(anchors, xs, ys, wheres)
    expected_prior = matern(anchors, anchors, 0.4) + 0.01 * np.eye(9)
    np.testing.assert_allclose(prior, expected_prior, atol=1e-6)
    tasks = []
    for x, y, where in zip(xs, ys, wheres, strict=True):
        weights = np.array([np.linalg.inv(prior) @ row for row in matern(x, anchors, 0.4)])
        errors = 0.03 + np.maximum(1.0 - np.einsum("nm,nm->n", weights, matern(x, anchors, 0.4)), 0.0)
        tasks.append((weights[where], y[where], errors[where]))
    for result, expected in zip((mean, covariance), slow_moments(prior, tasks, 10), strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-4)


def test_many_tasks_of_the_same_rows_give_their_own_moments(monkeypatch):
    """Without noise and anything between the anchors, EM ends at the moments of the tasks."""
    monkeypatch.setattr(empirical_gp, "NOISE", 1e-6)
    monkeypatch.setattr(empirical_gp, "NUGGET", 1e-6)
    rng = np.random.default_rng(1)
    anchors = np.linspace(0.0, 1.0, 3, dtype=np.float32)[:, None]
    factor = np.array([[1.0, 0.0, 0.0], [0.9, 0.4, 0.0], [-0.5, 0.3, 0.8]])
    ys = (rng.normal(size=(400, 3)) @ factor.T + [0.0, 1.0, -1.0]).astype(np.float32)
    mean, covariance, _ = past_moments(anchors, np.tile(anchors, (400, 1, 1)), ys, np.ones((400, 3), bool))
    np.testing.assert_allclose(mean, ys.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(covariance, np.cov(ys.T), atol=0.04)


def test_configurations_of_the_most_tasks_are_anchors():
    rng = np.random.default_rng(2)
    shared, own = rng.random((3, 2)).astype(np.float32), rng.random((2, 4, 2)).astype(np.float32)
    train = {str(i): Task(str(i), np.vstack([each, shared]), rng.normal(size=7)) for i, each in enumerate(own)}
    anchors, tasks = choose_rows(SearchSpace("s", train=train), 3, jax.random.key(0))
    assert sorted(map(tuple, anchors.tolist())) == sorted(map(tuple, shared.tolist()))
    np.testing.assert_array_equal(tasks.x, [shared, shared])


def test_improvement_over_all_hypotheses(hills, make_candidates):
    task, params = hills.test["new"], METHOD.fit(hills, jax.random.key(0))
    history, candidates = make_history(task.X[:9], task.y[:9], 12), make_candidates(task.X[9:30], 3)
    x, new, y = task.X[:9], np.asarray(candidates.x), compressed_scores(task.y[:9])
    anchors, weights = np.asarray(params.anchors), np.asarray(params.weights, np.float64)
    (mean, past), (new_mean, new_past) = (
        (values[:, 0], values[:, 1:]) for values in (matern(rows, anchors, 0.4) @ weights for rows in (x, new))
    )
    mean, new_mean = mean - mean.mean(), new_mean - mean.mean()
    residual, densities, improvements = y - mean, [], []
    for own, length, noise in GRID:
        matrix = 1 + 0.1 * np.outer(mean, mean) + past @ past.T + own * matern(x, x, length) + noise * np.eye(9)
        cross = 1 + 0.1 * np.outer(mean, new_mean) + past @ new_past.T + own * matern(x, new, length)
        prior = 1 + 0.1 * new_mean**2 + (new_past**2).sum(axis=1) + own
        inverse = np.linalg.inv(matrix)
        spread = (5 + residual @ inverse @ residual) / (5 + 9 - 2)
        variance = spread * (prior - np.einsum("nm,nk,km->m", cross, inverse, cross))
        densities.append(multivariate_t(np.zeros(9), matrix, df=5).logpdf(residual))
        improvements.append(log_improvement(new_mean + residual @ inverse @ cross, np.sqrt(variance), y.max()))
    expected = logsumexp(np.array(densities)[:, None] - logsumexp(densities) + np.array(improvements), axis=0)
    result = np.asarray(jax.jit(METHOD.acquire)(params, history, candidates, jax.random.key(0)))
    np.testing.assert_allclose(np.exp(result), np.exp(expected), rtol=5e-3, atol=1e-6)
