"""HEBO's method: warped columns, transformed responses, its three acquisition functions, its front, and its fit."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.gp import GPConfig, GPParams, fit_gp, log_marginal_likelihood
from dre_jax.methods.baselines import hebo
from dre_jax.methods.baselines.hebo import (
    HEBO,
    MOST,
    fit_warped_gp,
    kumaraswamy,
    normal_exponent,
    pareto_front,
    to_normal,
    yeo_johnson,
)
from dre_jax.search import make_history
from tests.oracles import log_improvement

SAMPLES = {
    "normal": lambda rng: rng.normal(size=40),
    "skewed": lambda rng: np.exp(rng.normal(size=40)),
    "skewed down": lambda rng: -np.exp(1.5 * rng.normal(size=25)),
    "few": lambda rng: rng.random(5),
}


def standard(y):
    return (y - y.mean()) / y.std()


def test_kumaraswamys_distribution_function():
    rng = np.random.default_rng(0)
    x, a, b = rng.random((50, 3)), np.array([0.3, 1.0, 4.0]), np.array([2.0, 0.1, 7.0])
    with jax.enable_x64(True):
        result = jax.jit(kumaraswamy)(x, np.log(a), np.log(b))
    np.testing.assert_allclose(result, 1 - (1 - x**a) ** b, rtol=1e-9, atol=1e-12)
    corners = (np.array(a, np.float32) for a in ([[0.0], [1.0]], [3.0], [-3.0]))
    ends = jax.jit(jax.jacobian(kumaraswamy, argnums=(0, 1, 2)))(*corners)
    assert all(np.isfinite(slope).all() for slope in ends)


@pytest.mark.parametrize("exponent", [-5.0, -0.4, 0.0, 1e-4, 1.0, 1.9999, 2.0, 7.0])
def test_yeo_johnson(exponent):
    y = np.random.default_rng(1).normal(size=60)
    with jax.enable_x64(True):
        result = jax.jit(yeo_johnson)(y, exponent)
    np.testing.assert_allclose(result, stats.yeojohnson(y, exponent), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_exponent_and_the_transformed_responses(name):
    y = SAMPLES[name](np.random.default_rng(2))
    bent, exponent = stats.yeojohnson(standard(y))
    assert -5 < exponent < 7
    # All in one shape, which is compiled once.
    padded, where = np.full(42, -9.0), np.arange(42) < len(y)
    padded[: len(y)] = y
    with jax.enable_x64(True):
        result = jax.jit(normal_exponent)(jnp.where(where, (padded - y.mean()) / y.std(), 0.0), where)
        normal = jax.jit(to_normal)(padded, where)
    assert float(result) == pytest.approx(exponent, abs=2e-3)
    np.testing.assert_allclose(normal[: len(y)], standard(bent), atol=5e-3)
    assert not normal[len(y) :].any()


KEYS = jax.random.split(jax.random.key(0))
objectives = jax.jit(HEBO().objectives)
likelihood, front_of = jax.jit(log_marginal_likelihood), jax.jit(pareto_front)


def history_of(n, columns):
    rng = np.random.default_rng(0)
    return make_history(rng.random((n, columns)), rng.random(n), capacity=16)


def test_the_three_acquisition_functions_without_noise():
    rng = np.random.default_rng(3)
    mean, deviation, target, n, columns = rng.normal(size=50), rng.uniform(0.2, 2, 50), 0.4, 12, 6
    process = GPParams(np.zeros(columns, np.float32), np.float32(0), np.float32(-np.inf))
    history = history_of(n, columns)
    inputs = (np.asarray(a, np.float32) for a in (mean, deviation, target))
    bound, improvement, probability = objectives(*inputs, process, history, KEYS)
    # The package's own formula, upsilon 0.5 and delta 0.01.
    kappa = np.sqrt(0.5 * 2 * ((2.0 + columns / 2.0) * np.log(n) + np.log(3 * np.pi**2 / (3 * 0.01))))
    np.testing.assert_allclose(bound, mean + kappa * deviation, rtol=1e-5)
    z = (mean - target - 1e-4) / deviation
    np.testing.assert_allclose(improvement, log_improvement(mean, deviation, target + 1e-4), atol=1e-4)
    np.testing.assert_allclose(probability, stats.norm.logcdf(z), atol=1e-4)


def test_the_noise_is_twice_the_gaussian_processs():
    process = GPParams(np.zeros(2, np.float32), np.float32(0), np.log(np.float32(0.09)))
    mean, history = np.zeros(20000, np.float32), history_of(1, 2)
    bound, improvement, _ = objectives(mean, mean + 1, np.float32(0), process, history, KEYS)
    kappa = np.sqrt(np.log(np.pi**2 / 0.01))
    assert np.mean(bound) == pytest.approx(kappa, abs=0.02)
    assert np.var(bound) == pytest.approx(0.18, rel=0.05)
    noise = np.sqrt(0.18) * np.asarray(jax.random.normal(KEYS[1], mean.shape), np.float64)
    np.testing.assert_allclose(improvement, log_improvement(noise, np.ones(20000), 1e-4), rtol=1e-4, atol=1e-4)
    # The noise of the bound and of the improvement are drawn apart.
    assert abs(np.corrcoef(bound, improvement)[0, 1]) < 0.03


@pytest.mark.slow
def test_warps_raise_the_likelihood_where_columns_are_warped():
    rng = np.random.default_rng(5)
    x = rng.random((40, 1)).astype(np.float32)
    y = np.sin(12.0 * x[:, 0] ** 6)
    y, where = (y - y.mean()) / y.std(), np.ones(40, bool)
    config = GPConfig(steps=100, priors=False)
    bent = jax.jit(partial(fit_warped_gp, config))(x, y, where)
    straight = jax.jit(partial(fit_gp, config))(x, y, where)
    assert likelihood(bent.process, bent.warp(x), y, where) - likelihood(straight, x, y, where) > 5
    # Steep where the response changes: near 1.
    assert float(bent.log_a[0]) > 0.3


# The front, against a loop over pairs.


def brute(values):
    result = []
    for one in values.T:
        no_worse, better = np.all(one <= values.T, axis=1), np.any(one < values.T, axis=1)
        result.append(not (no_worse & better).any())
    return np.array(result)


@pytest.mark.parametrize("steps", [1000, 4])
def test_the_front(steps):
    # In few steps many are tied, in one value or in all.
    values = np.floor(np.random.default_rng(0).random((3, 120)) * steps)
    result = front_of(jnp.asarray(values, jnp.float32), jnp.ones(120, bool), KEYS[0])
    np.testing.assert_array_equal(result, brute(values))


def test_masked_candidates_dominate_none():
    values = np.random.default_rng(1).random((3, 60)).astype(np.float32)
    where = np.arange(60) % 3 > 0
    values[:, ~where] += 2.0
    result = np.asarray(front_of(jnp.asarray(values), jnp.asarray(where), KEYS[0]))
    np.testing.assert_array_equal(result[where], brute(values[:, where]))
    assert not result[~where].any()
    assert not np.asarray(front_of(jnp.asarray(values), jnp.zeros(60, bool), KEYS[0])).any()


def test_large_fronts_are_cut():
    rng = np.random.default_rng(2)
    values = np.abs(rng.normal(size=(3, 1300))).astype(np.float32)
    values /= np.linalg.norm(values, axis=0)  # of which none beats another
    result = np.asarray(front_of(jnp.asarray(values), jnp.ones(1300, bool), KEYS[0]))
    assert result.sum() == MOST
    values[:, rng.random(1300) < 0.4] *= 0.9
    result = np.asarray(front_of(jnp.asarray(values), jnp.ones(1300, bool), KEYS[0]))
    true = brute(values)
    assert true.sum() < 1300
    assert result.sum() > 0.6 * true.sum()
    assert not (result & ~true).any()


def test_equal_candidates_are_equally_likely_in_the_front(monkeypatch):
    """A table is sorted by response: the first of equal rows would be the best."""
    monkeypatch.setattr(hebo, "MOST", 8)
    keys, everyone = jax.random.split(KEYS[0], 500), jnp.ones(10, bool)
    selected = jax.jit(jax.vmap(lambda key: pareto_front(jnp.zeros((3, 10)), everyone, key)))(keys)
    assert (selected.sum(axis=1) == 8).all()
    assert stats.chisquare((~selected).sum(axis=0)).pvalue > 0.01
