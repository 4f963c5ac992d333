"""DNGO: Bayesian linear regression against Bishop's closed form in NumPy, and how the network is trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from dre_jax.methods.baselines.dngo import (
    DNGO,
    LinearParams,
    fit_linear,
    linear_log_evidence,
    linear_posterior,
)
from dre_jax.nn.mlp import MLPConfig, standard_columns
from dre_jax.optim.full_batch import FullBatchConfig
from tests.oracles import forward, in_slots

WIDTH, N_NEW, CAPACITY = 7, 9, 45

fit = jax.jit(fit_linear)


@jax.jit
def evaluated(params, slots, new):
    return *linear_posterior(params, *slots)(new), linear_log_evidence(params, *slots)


def data(n):
    rng = np.random.default_rng(3)
    basis = np.concatenate([np.tanh(2.0 * rng.normal(size=(n + N_NEW, WIDTH - 1))), np.ones((n + N_NEW, 1))], axis=1)
    y = basis[:n] @ rng.normal(size=WIDTH) + 0.3 * rng.normal(size=n)
    return basis[:n], (y - y.mean()) / y.std(), basis[n:]


def slots(basis, y):
    return in_slots(CAPACITY, basis, y, fill=(7.0, 0.0), dtype=np.float64)


def closed_form(alpha, beta, basis, y, new):
    """Mean and variance at new points, and log-evidence (Bishop 2006, equations 3.53, 3.54, 3.58, 3.59 and 3.86)."""
    k = alpha * np.eye(basis.shape[1]) + beta * basis.T @ basis
    m = beta * np.linalg.solve(k, basis.T @ y)
    variance = np.array([row @ np.linalg.inv(k) @ row for row in new])
    energy = 0.5 * beta * np.sum((y - basis @ m) ** 2) + 0.5 * alpha * m @ m
    logs = len(m) * np.log(alpha) + len(y) * np.log(beta / (2.0 * np.pi)) - np.linalg.slogdet(k)[1]
    return new @ m, variance, 0.5 * logs - energy


@pytest.mark.parametrize(("alpha", "beta"), [(0.02, 400.0), (30.0, 5.0)])
@pytest.mark.parametrize("n", [3, 40, CAPACITY])
def test_posterior_and_evidence(alpha, beta, n):
    basis, y, new = data(n)
    mean, variance, evidence = closed_form(alpha, beta, basis, y, new)
    with jax.enable_x64(True):
        result = evaluated(LinearParams(jnp.log(alpha), jnp.log(beta)), slots(basis, y), jnp.asarray(new))
    np.testing.assert_allclose(result[0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result[1], variance, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(result[2], evidence, rtol=1e-10)


@pytest.mark.parametrize("n", [30, CAPACITY])
def test_the_precisions_are_the_likeliest(n):
    basis, y, new = data(n)
    usual = np.array([np.log(np.sum(basis**2) / len(y)), 2.0])

    def cost(params):
        evidence = closed_form(*np.exp(params), basis, y, new)[2]
        return -evidence + 0.5 * np.sum((params - usual) ** 2) / 0.09

    best = minimize(cost, np.array([0.0, 2.0]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        result = np.array(fit(*slots(basis, y)))
    assert cost(result) - best.fun < 0.01
    np.testing.assert_allclose(result, best.x, atol=0.05)


def test_dngo_trains_on_squared_error(hills):
    task = hills.test["new"]
    x, y = standard_columns(jnp.asarray(task.X[:20])), jnp.asarray(stats.zscore(task.y[:20]), jnp.float32)
    where = jnp.ones(20, bool)
    method = DNGO(network=MLPConfig(hidden=(20,)), fitting=FullBatchConfig(steps=400, learning_rate=0.02))
    params = jax.jit(method.train)(x, y, where, jax.random.key(5))
    assert np.mean((forward(params, np.asarray(x), activation=np.tanh)[:, 0] - np.asarray(y)) ** 2) < 0.02
