"""Gaussian processes against scikit-learn and NumPy in float64, all with empty slots."""

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import lognorm, zscore
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from dre_jax.gp import GPParams, best_response, standardise
from dre_jax.gp import regression as gp
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.kernels import matern52, squared_distances, squared_distances_by_products, squared_exponential
from tests import oracles

LENGTH, SCALE, NOISE = (0.3, 1.7, 0.8), 1.4, 0.02
EMPTY = 5
KERNELS = {"matern52": Matern(LENGTH, nu=2.5), "squared_exponential": RBF(LENGTH)}

fit = jax.jit(fit_gp, static_argnums=0)
likelihood = jax.jit(jax.value_and_grad(gp.log_marginal_likelihood))
gp_posterior, leave_one_out, sample_leave_one_out = (
    jax.jit(f) for f in (gp.gp_posterior, gp.leave_one_out, gp.sample_leave_one_out)
)


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def points(seed=0, n=12, m=6, columns=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, columns))
    y = np.sin(5 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.normal(size=n)
    return x, (y - y.mean()) / y.std(), rng.uniform(size=(m, columns))


def slots(x, y, dtype=np.float64):
    """A history with empty slots behind."""
    return oracles.in_slots(len(y) + EMPTY, x, y, fill=(0.3, 0.0), dtype=dtype)


def params(dtype=jnp.float64, kernel="matern52"):
    return GPParams(*(jnp.log(jnp.asarray(a, dtype)) for a in (LENGTH, SCALE, NOISE)), kernel)


def reference(x, y, kernel=KERNELS["matern52"]):
    kernel = ConstantKernel(SCALE) * kernel + WhiteKernel(NOISE)
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(x, y)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", KERNELS)
def test_likelihood_gradient_and_posterior_are_scikit_learns(name):
    x, y, new = points()
    inputs, fitted = params(kernel=name), reference(x, y, KERNELS[name])
    value, slope = likelihood(inputs, *slots(x, y))
    expected, expected_slope = fitted.log_marginal_likelihood(fitted.kernel_.theta, eval_gradient=True)
    assert float(value) == pytest.approx(expected, rel=1e-9)
    result = np.concatenate([[slope.log_scale], slope.log_length, [slope.log_noise]])
    np.testing.assert_allclose(result, expected_slope, rtol=1e-7)
    mean, variance = gp_posterior(inputs, *slots(x, y), jnp.asarray(new))
    expected, deviation = fitted.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(variance + NOISE, deviation**2, rtol=1e-8)  # theirs is of an observation
    with jax.enable_x64(False):
        single = gp_posterior(params(jnp.float32, name), *slots(x, y, np.float32), jnp.asarray(new, jnp.float32))
    np.testing.assert_allclose(single, [mean, variance], atol=2e-4)


@pytest.mark.usefixtures("double")
def test_variances_of_responses_are_scikit_learns_alpha():
    x, y, new = points()
    errors = np.linspace(0.0, 0.5, len(y))
    fitted = reference(x, y).set_params(alpha=errors).fit(x, y)
    padded = jnp.pad(jnp.asarray(errors), (0, EMPTY))
    value, _ = likelihood(params(), *slots(x, y), padded)
    assert float(value) == pytest.approx(fitted.log_marginal_likelihood_value_, rel=1e-9)
    x_slots, y_slots, where = slots(x, y)
    prepared = jax.jit(gp.condition_on_history)(params(), x_slots, y_slots, where, padded)
    mean, _ = jax.jit(gp.predict_in_blocks)(params(), x_slots, prepared, jnp.asarray(new))
    np.testing.assert_allclose(mean, fitted.predict(new), rtol=1e-8)


@pytest.mark.usefixtures("double")
def test_leave_one_out_predictions_are_those_of_a_process_without_the_trial():
    x, y, _ = points()
    result = leave_one_out(params(), *slots(x, y))
    for j in range(len(y)):
        others = np.arange(len(y)) != j
        process = oracles.fitted_process(params(jnp.float32), x[others], y[others])
        mean, deviation = process.predict(x[j : j + 1], return_std=True)
        assert float(result.mean[j]) == pytest.approx(mean[0], rel=1e-5)
        assert float(result.deviation[j]) == pytest.approx((deviation[0] ** 2 + NOISE) ** 0.5, rel=1e-5)


def test_leave_one_out_draws_have_the_moments_of_the_posterior():
    x, y, _ = points(n=6)
    n_draws = 40_000
    normal = np.random.default_rng(3).normal(size=(2, 6 + EMPTY, n_draws))
    with jax.enable_x64(True):
        draws = np.asarray(sample_leave_one_out(params(), *slots(x, y), *map(jnp.asarray, normal)))[:, :6, :6]
    for j in range(6):
        others = np.arange(6) != j
        process = oracles.fitted_process(params(jnp.float32), x[others], y[others])
        mean, covariance = process.predict(x, return_cov=True)
        np.testing.assert_allclose(draws[:, j].mean(axis=0), mean, atol=5 * (SCALE / n_draws) ** 0.5)
        np.testing.assert_allclose(np.cov(draws[:, j].T), covariance, atol=5 * SCALE * (2 / n_draws) ** 0.5)
    single = (jnp.asarray(a, jnp.float32) for a in normal)
    result = sample_leave_one_out(params(jnp.float32), *slots(x, y, np.float32), *single)
    np.testing.assert_allclose(result[:, :6, :6], draws, atol=2e-3)


@pytest.mark.usefixtures("double")
def test_the_fit_reaches_scikit_learns_likelihood():
    x, y, _ = points(seed=3, n=30)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern([1.0] * 3, (5e-3, 200.0), nu=2.5) + WhiteKernel(0.1, (1e-6, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs says so where a length scale ends at its bound
        best = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=4, random_state=0).fit(x, y)
    for config in (GPConfig(steps=200), GPConfig(optimiser="bfgs", steps=30)):
        result = fit(replace(config, priors=False), *slots(x, y))
        assert float(likelihood(result, *slots(x, y))[0]) > best.log_marginal_likelihood_value_ - 0.05


def test_priors_hold_a_gaussian_process_of_few_trials():
    result = fit(GPConfig(kernel="squared_exponential"), jnp.full((1, 4), 0.5), jnp.zeros(1), jnp.ones(1, bool))
    lengths = np.geomspace(1e-3, 1e2, 20_001)
    likeliest = lengths[lognorm.logpdf(lengths, np.sqrt(3.0), scale=np.exp(np.sqrt(2.0) + 0.5 * np.log(4.0))).argmax()]
    np.testing.assert_allclose(result.log_length, np.log(likeliest), atol=0.1)
    assert result.kernel == "squared_exponential"


def test_standardise_counts_filled_slots_only():
    y, where = np.array([3.0, 99.0, 1.0, 8.0], np.float32), np.array([True, False, True, True])
    result = jax.jit(standardise)(y, where)
    filled = np.array([3.0, 1.0, 8.0])
    np.testing.assert_allclose(np.asarray(result.y)[where], zscore(filled), rtol=1e-6)
    assert float(result.y[1]) == 0.0
    assert float(result.deviation) == pytest.approx(filled.std())
    assert float(best_response(y, where)) == 8.0
    for value in (0.0, 0.1, -7e5):
        result = standardise(jnp.full(7, value, jnp.float32), jnp.ones(7, bool))
        assert (result.y.any(), float(result.deviation)) == (False, 1.0)


@pytest.mark.parametrize(("kernel", "theirs"), [(matern52, Matern(nu=2.5)), (squared_exponential, RBF())])
def test_kernels_are_scikit_learns_and_have_a_slope_at_zero(kernel, theirs):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    for distances in (squared_distances, squared_distances_by_products):
        result = jax.jit(lambda a, b, of=distances: kernel(of(a, b)))(a.astype(np.float32), b.astype(np.float32))
        np.testing.assert_allclose(result, theirs(a, b), atol=1e-6)
    slope = jax.jit(jax.grad(lambda a: kernel(squared_distances(a, a)).sum()))(np.ones((3, 2), np.float32))
    assert np.isfinite(slope).all()
