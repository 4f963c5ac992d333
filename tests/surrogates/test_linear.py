"""Bayesian linear regression against Bishop's closed form over weights, in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from dre_jax.surrogates.linear import LinearParams, condition_linear, fit_linear, log_evidence, predict_linear

N, WIDTH, N_NEW = 12, 7, 9


@pytest.fixture(params=[0, 5], ids=["full", "padded"])
def empty(request):
    return request.param


def data(n=N):
    rng = np.random.default_rng(3)
    basis = np.concatenate([np.tanh(2.0 * rng.normal(size=(n + N_NEW, WIDTH - 1))), np.ones((n + N_NEW, 1))], axis=1)
    y = basis[:n] @ rng.normal(size=WIDTH) + 0.3 * rng.normal(size=n)
    return basis[:n], (y - y.mean()) / y.std(), basis[n:]


def padded(basis, y, empty):
    """With slots of garbage behind."""
    where = np.arange(len(y) + empty) < len(y)
    basis = np.pad(basis, ((0, empty), (0, 0)), constant_values=7.0)
    return jnp.asarray(basis), jnp.asarray(np.pad(y, (0, empty))), jnp.asarray(where)


def closed_form(alpha, beta, basis, y, new):
    """Mean and variance at new points, and log-evidence (Bishop 2006, equations 3.53, 3.54, 3.58, 3.59 and 3.86)."""
    k = alpha * np.eye(basis.shape[1]) + beta * basis.T @ basis
    m = beta * np.linalg.solve(k, basis.T @ y)
    variance = np.array([row @ np.linalg.inv(k) @ row for row in new])
    energy = 0.5 * beta * np.sum((y - basis @ m) ** 2) + 0.5 * alpha * m @ m
    evidence = (
        0.5 * len(m) * np.log(alpha)
        + 0.5 * len(y) * np.log(beta / (2.0 * np.pi))
        - energy
        - 0.5 * np.linalg.slogdet(k)[1]
    )
    return new @ m, variance, evidence


@pytest.mark.parametrize(("alpha", "beta"), [(0.02, 400.0), (30.0, 5.0)])
@pytest.mark.parametrize("n", [3, 40])
def test_posterior_and_evidence(alpha, beta, n, empty):
    basis, y, new = data(n)
    mean, variance, evidence = closed_form(alpha, beta, basis, y, new)
    with jax.enable_x64(True):
        slots = padded(basis, y, empty)
        params = LinearParams(jnp.log(alpha), jnp.log(beta))
        found = predict_linear(condition_linear(params, *slots), jnp.asarray(new))
        np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found[1], variance, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(log_evidence(params, *slots), evidence, rtol=1e-10)


def test_the_precisions_are_the_likeliest(empty):
    basis, y, new = data(30)
    usual = np.array([np.log(np.sum(basis**2) / len(y)), 2.0])

    def cost(params):
        evidence = closed_form(*np.exp(params), basis, y, new)[2]
        return -evidence + 0.5 * np.sum((params - usual) ** 2) / 0.09

    best = minimize(cost, np.array([0.0, 2.0]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        found = np.array(fit_linear(*padded(basis, y, empty)))
    assert cost(found) - best.fun < 0.01
    np.testing.assert_allclose(found, best.x, atol=0.05)


def test_of_float32_with_equal_rows_and_no_noise():
    basis = jnp.asarray(np.repeat(data(4)[0], 10, axis=0), jnp.float32)
    y = jnp.asarray(np.repeat(data(4)[1], 10), jnp.float32)
    where = jnp.ones(40, bool)
    params = fit_linear(basis, y, where)
    mean, variance = predict_linear(condition_linear(params, basis, y, where), basis)
    np.testing.assert_allclose(mean, y, atol=0.05)
    assert (variance > 0).all()
    assert (variance < 0.01).all()


@pytest.mark.parametrize("n", [0, 1])
def test_next_to_nothing(n):
    basis, y, new = data()
    where = jnp.arange(N) < n
    y = jnp.where(where, 0.0, 0.0)
    basis = jnp.asarray(basis, jnp.float32)
    params = fit_linear(basis, y, where)
    for value in predict_linear(condition_linear(params, basis, y, where), jnp.asarray(new, jnp.float32)):
        assert jnp.isfinite(value).all()
