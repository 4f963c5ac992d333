"""Gaussian processes against scikit-learn, in float64, and against themselves with empty slots."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.surrogates.gp import GPParams, draw_left_out, leave_one_out, log_marginal_likelihood, posterior
from dre_jax.surrogates.gp_fit import GPConfig, fit_gp, log_prior, maximise

fit = jax.jit(fit_gp, static_argnums=0)

LENGTH, SCALE, NOISE = (0.3, 1.7, 0.8), 1.4, 0.02


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def points(seed=0, n=12, m=6, columns=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, columns))
    y = np.sin(5 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std(), rng.uniform(size=(m, columns))


def params(dtype=jnp.float64):
    return GPParams(*(jnp.log(jnp.asarray(a, dtype)) for a in (LENGTH, SCALE, NOISE)))


def reference(x, y):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(SCALE) * Matern(LENGTH, nu=2.5) + WhiteKernel(NOISE)
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(x, y)


@pytest.mark.usefixtures("double")
def test_likelihood_and_gradient_are_scikit_learns():
    x, y, _ = points()
    where = jnp.ones(len(y), bool)
    value, slope = jax.value_and_grad(log_marginal_likelihood)(params(), jnp.asarray(x), jnp.asarray(y), where)
    fitted = reference(x, y)
    expected, expected_slope = fitted.log_marginal_likelihood(fitted.kernel_.theta, eval_gradient=True)
    assert float(value) == pytest.approx(expected, rel=1e-9)
    found = np.concatenate([[slope.log_scale], slope.log_length, [slope.log_noise]])
    np.testing.assert_allclose(found, expected_slope, rtol=1e-7)


@pytest.mark.usefixtures("double")
def test_posterior_is_scikit_learns():
    x, y, new = points()
    mean, variance = posterior(params(), *(jnp.asarray(a) for a in (x, y, np.ones(len(y), bool), new)))
    expected, deviation = reference(x, y).predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(variance + NOISE, deviation**2, rtol=1e-8)  # theirs is of an observation


def test_single_precision_is_near():
    x, y, new = points()
    single = [jnp.asarray(a, jnp.float32) for a in (x, y)]
    mean, variance = posterior(params(jnp.float32), *single, jnp.ones(len(y), bool), jnp.asarray(new, jnp.float32))
    expected, deviation = reference(x, y).predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, atol=2e-4)
    np.testing.assert_allclose(variance + NOISE, deviation**2, atol=2e-4)


@pytest.mark.usefixtures("double")
def test_leave_one_out_is_the_process_without_the_one():
    x, y, _ = points()
    where = np.ones(len(y), bool)
    found = leave_one_out(params(), *(jnp.asarray(a) for a in (x, y, where)))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        mean, variance = posterior(
            params(), *(jnp.asarray(a) for a in (x[others], y[others], where[others], x[i : i + 1]))
        )
        assert float(found.mean[i]) == pytest.approx(float(mean[0]), rel=1e-8)
        assert float(found.deviation[i]) == pytest.approx(float(variance[0] + NOISE) ** 0.5, rel=1e-8)


def kernel(a, b):
    distance = np.linalg.norm((a[:, None] - b[None]) / np.array(LENGTH), axis=-1) * np.sqrt(5.0)
    return SCALE * (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)


def left_out(x, y, j):
    """Mean and covariance, at all points, of the process that has not seen the j-th."""
    others = np.arange(len(y)) != j
    cross = kernel(x, x[others])
    gain = np.linalg.solve(kernel(x[others], x[others]) + NOISE * np.eye(len(y) - 1), cross.T).T
    return gain @ y[others], kernel(x, x) - gain @ cross.T


@pytest.mark.usefixtures("double")
def test_draws_without_the_one_have_its_moments():
    x, y, _ = points(n=6)
    n_draws = 40_000
    signal, noise = np.random.default_rng(3).normal(size=(2, 6, n_draws))
    draws = np.asarray(draw_left_out(params(), *(jnp.asarray(a) for a in (x, y, np.ones(6, bool), signal, noise))))
    for j in range(6):
        mean, covariance = left_out(x, y, j)
        np.testing.assert_allclose(draws[:, j].mean(axis=0), mean, atol=5 * (SCALE / n_draws) ** 0.5)
        np.testing.assert_allclose(np.cov(draws[:, j].T), covariance, atol=5 * SCALE * (2 / n_draws) ** 0.5)


def test_draws_without_the_one_in_float32_and_with_empty_slots():
    x, y, _ = points()
    signal, noise = np.random.default_rng(3).normal(size=(2, 12, 5))
    empty = ((0, 4), (0, 0))
    padded = np.pad(x, empty), np.pad(y, (0, 4)), np.arange(16) < 12, np.pad(signal, empty), np.pad(noise, empty)
    found = draw_left_out(
        params(jnp.float32), *(jnp.asarray(a, a.dtype if a.dtype == bool else np.float32) for a in padded)
    )
    with jax.enable_x64(True):
        whole = draw_left_out(params(), *(jnp.asarray(a) for a in (x, y, np.ones(12, bool), signal, noise)))
    np.testing.assert_allclose(found[:, :12, :12], whole, atol=2e-3)


def test_empty_slots_play_no_part():
    x, y, new = (jnp.asarray(a, jnp.float32) for a in points())
    empty = 5
    where = jnp.arange(len(y) + empty) < len(y)
    padded = jnp.pad(x, ((0, empty), (0, 0)), constant_values=0.3), jnp.pad(y, (0, empty))
    full = jnp.ones(len(y), bool)
    assert float(log_marginal_likelihood(params(jnp.float32), *padded, where)) == pytest.approx(
        float(log_marginal_likelihood(params(jnp.float32), x, y, full)), rel=1e-5
    )
    config = GPConfig(steps=30)
    short, long = (fit(config, *rows) for rows in ((x, y, full), (*padded, where)))
    for a, b in zip(short, long, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-3)
    for a, b in zip(posterior(short, x, y, full, new), posterior(short, *padded, where, new), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.usefixtures("double")
def test_the_fit_reaches_scikit_learns_likelihood():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    x, y, _ = points(seed=3, n=30)
    where = jnp.ones(len(y), bool)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern([1.0] * 3, (5e-3, 200.0), nu=2.5) + WhiteKernel(0.1, (1e-6, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs says so where a length scale ends at its bound
        best = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=4, random_state=0).fit(x, y)
    config = GPConfig(steps=200, priors=False)
    found = fit(config, jnp.asarray(x), jnp.asarray(y), where)
    value = float(log_marginal_likelihood(found, jnp.asarray(x), jnp.asarray(y), where))
    assert value > best.log_marginal_likelihood_value_ - 0.05


def test_priors_hold_a_process_of_few_trials():
    x, y = jnp.full((1, 4), 0.5), jnp.zeros(1)
    found = fit(GPConfig(steps=100), x, y, jnp.ones(1, bool))
    usual = float(np.sqrt(2.0) + 0.5 * np.log(4.0))
    np.testing.assert_allclose(found.log_length, usual, atol=0.1)
    assert float(log_prior(found)) > -1.0


def test_nothing_finite_moves_nothing():
    found, value = maximise(lambda a: jnp.log(a - 2.0), jnp.float32(1.0), steps=5, learning_rate=0.1, project=abs)
    assert (float(found), float(value)) == (1.0, -np.inf)
