"""The copula against scipy, and a Gaussian process of residuals by hand."""

import jax
import numpy as np
import pytest
from scipy import stats

from dre_jax.data import SearchSpace, Task
from dre_jax.data.tasks import tie_levels
from dre_jax.gp import GPConfig, fit_gp, gp_posterior
from dre_jax.methods.baselines.gcp import (
    CopulaThompsonSampling,
    GaussianCopulaProcess,
    QuantileConfig,
    copula_scale,
    moments,
    past_rows,
    train_quantile_net,
)
from dre_jax.search import make_history
from tests.oracles import log_improvement

PRIOR = QuantileConfig(steps=800, hidden=(24, 24))
METHOD = GaussianCopulaProcess(prior=PRIOR, fitting=GPConfig(steps=25))
fit, predicted = jax.jit(fit_gp, static_argnums=0), jax.jit(gp_posterior)
moments_of, copula_of = jax.jit(moments, static_argnums=0), jax.jit(copula_scale)
acquire = jax.jit(METHOD.acquire)


@pytest.fixture(scope="module")
def network(hills):
    return METHOD.fit(hills, jax.random.key(0))


def scipys(y):
    n = len(y)
    delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    return stats.norm.ppf(np.clip(stats.ecdf(y).cdf.evaluate(y), delta, 1 - delta))


@pytest.mark.parametrize("seed", range(3))
def test_the_copula_is_scipys(seed):
    y = np.random.default_rng(seed).integers(0, 9, size=14).astype(float) * 10.0**seed
    result = np.asarray(copula_of(np.pad(tie_levels(y), (0, 6)), np.arange(20) < 14))
    np.testing.assert_allclose(result[:14], scipys(y), atol=1e-5)
    assert (result[14:] == 0).all()
    tasks = {name: Task(name, np.zeros((len(y), 1), np.float32), y) for name, y in (("t", y), ("alone", y[:1]))}
    expected = np.append(scipys(y), 0.0)  # a single evaluation says nothing
    np.testing.assert_allclose(past_rows(SearchSpace("s", train=tasks))[1], expected, atol=1e-6)


def test_the_network_finds_mean_and_deviation():
    # z is left, right or nothing by the first column; the second decides how surely.
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(4000, 2)).astype(np.float32)
    y = 2.0 * (x[:, 0] > 0.5) + np.where(x[:, 1] > 0.5, 0.3, 0.05) * rng.normal(size=4000)
    rows = past_rows(SearchSpace("s", train={"t": Task("t", x, y)}))
    config = QuantileConfig(steps=1500, dropout=0.0)
    params, losses = train_quantile_net(config, *rows, jax.random.key(0))
    losses = np.asarray(losses)
    assert losses[-100:].mean() < losses[:100].mean() - 0.2
    at = np.array([[0.2, 0.2], [0.8, 0.2]], np.float32)
    mean, _ = moments_of(config, params, at)
    for row, result in zip(at, np.asarray(mean), strict=True):
        near = (np.abs(x - row) < 0.2).all(axis=1)
        assert float(result) == pytest.approx(float(rows[1][near].mean()), abs=0.25)


@pytest.mark.slow
def test_prior_and_residuals_together(network, hills, make_candidates):
    task = hills.test["new"]
    history, candidates = make_history(task.X[:9], task.y[:9], 12), make_candidates(task.X[9:30], 3)
    z = np.concatenate([scipys(np.asarray(history.response, np.float64)[:9]), np.zeros(3)])
    mean, variance = (np.asarray(a, np.float64) for a in moments_of(PRIOR, network, history.x))
    residual = np.where(history.where, (z - mean) / np.sqrt(variance), 0.0).astype(np.float32)
    process = fit(METHOD.fitting, history.x, residual, history.where)
    left, spread = (np.asarray(a) for a in predicted(process, history.x, residual, history.where, candidates.x))
    prior, width = (np.asarray(a) for a in moments_of(PRIOR, network, candidates.x))
    expected = log_improvement(prior + np.sqrt(width) * left, np.sqrt(width * spread), z[:9].max())
    result = acquire(network, history, candidates, jax.random.key(0))
    np.testing.assert_allclose(np.exp(result), np.exp(expected), rtol=5e-3, atol=1e-6)


def test_draws_are_of_the_prior(network, hills, make_candidates):
    task = hills.test["new"]
    history, candidates = make_history(task.X[:4], task.y[:4]), make_candidates(task.X[4:12])
    method = CopulaThompsonSampling(prior=PRIOR)
    draw = jax.jit(jax.vmap(lambda key: method.acquire(network, history, candidates, key)))
    draws = np.asarray(draw(jax.random.split(jax.random.key(1), 4000)))
    mean, variance = moments_of(PRIOR, network, candidates.x)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(variance), rtol=0.05)
