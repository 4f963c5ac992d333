"""The Gaussian process around an ensemble's ranks: against its weights in NumPy, and where the ensemble is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, rankdata

from dre_jax.gp.regression import GPParams
from dre_jax.methods.baselines.dre_gp import (
    FITTING,
    Ranked,
    RankedPrior,
    fit_ranked_prior,
    ranked_log_likelihood,
    ranked_posterior,
)

LENGTH, SCALE, NOISE, SLOPE, SPREAD = (0.3, 1.7), 0.4, 0.02, 0.8, 0.6
CAPACITY = 40
predicted, likelihood = jax.jit(ranked_posterior), jax.jit(ranked_log_likelihood)


@jax.jit
def fitted(old, y, where, new):
    return ranked_posterior(fit_ranked_prior(FITTING, old, y, where), old, y, where, new)


def params(dtype=jnp.float64):
    *process, slope, spread = (jnp.log(jnp.asarray(a, dtype)) for a in (LENGTH, SCALE, NOISE, SLOPE, SPREAD))
    return RankedPrior(GPParams(*process), slope, spread)


def points(n=9, m=5, members=3, seed=0):
    rng = np.random.default_rng(seed)
    x, z, y = rng.uniform(size=(n + m, 2)), rng.normal(size=(n + m, members)), rng.normal(size=n)
    return x, z, (y - y.mean()) / y.std(), n


def written_out(x, z, y, n):
    """Mean and covariance of all signals by the unknowns themselves: b, the weights, and f at every point."""
    from sklearn.gaussian_process.kernels import Matern

    total, members = z.shape
    off = z - z.mean(axis=1, keepdims=True)
    design = np.concatenate([np.ones((total, 1)), off, np.eye(total)], axis=1)
    prior = np.zeros((1 + members + total,) * 2)
    prior[0, 0] = 1.0
    prior[range(1, 1 + members), range(1, 1 + members)] = SPREAD / members
    prior[1 + members :, 1 + members :] = SCALE * Matern(LENGTH, nu=2.5)(x)
    believed = SLOPE * (z.mean(axis=1) - z[:n].mean())
    seen = design[:n]
    of_observations = seen @ prior @ seen.T + NOISE * np.eye(n)
    gain = prior @ seen.T @ np.linalg.inv(of_observations)
    unknowns, left = gain @ (y - believed[:n]), prior - gain @ seen @ prior
    density = multivariate_normal(believed[:n], of_observations).logpdf(y)
    return believed + design @ unknowns, np.diag(design @ left @ design.T), density


def split(x, z, y, n, dtype, capacity):
    """Trials in slots of which some are empty, and the other points."""
    where = np.arange(capacity) < n
    rows = np.where(where, np.arange(capacity), 0)
    old, new = (Ranked(*(jnp.asarray(a[part], dtype) for a in (x, z))) for part in (rows, slice(n, None)))
    return old, jnp.asarray(np.where(where, y[np.minimum(rows, n - 1)], 0.0), dtype), jnp.asarray(where), new


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_posterior_and_likelihood_are_those_of_the_weights(dtype):
    x, z, y, n = points()
    mean, variance, density = written_out(x, z, y, n)
    near = {"rtol": 1e-9} if dtype == np.float64 else {"atol": 2e-4}
    with jax.enable_x64(dtype == np.float64):
        old, y, where, new = split(x, z, y, n, dtype, n + 4)
        found_mean, found_variance = predicted(params(dtype), old, y, where, new)
        found_density = likelihood(params(dtype), old, y, where)
    np.testing.assert_allclose(found_mean, mean[n:], **near)
    np.testing.assert_allclose(found_variance, variance[n:], **near)
    assert float(found_density) == pytest.approx(density, rel=1e-9 if dtype == np.float64 else 1e-4)


def mean_at(x, z, truth, n):
    """Predicted means after n trials."""
    y = (truth[:n] - truth[:n].mean()) / truth[:n].std()
    return fitted(*split(x, z, y, n, jnp.float32, CAPACITY))[0]


def after(n, agreement):
    """Correlation of prediction and truth at 200 points, of an ensemble that agrees with the truth so far."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(n + 200, 2))
    truth = np.sin(3 * x[:, 0])
    z = norm.ppf((rankdata(agreement * truth) - 0.5) / len(truth))[:, None] + 0.1 * rng.normal(size=(len(x), 3))
    return np.corrcoef(mean_at(x, z, truth, n), truth[n:])[0, 1]


def test_a_right_ensemble_is_believed_at_once_and_a_wrong_one_is_left():
    assert after(3, agreement=1.0) > 0.9
    assert after(3, agreement=-1.0) < 0.0
    assert after(30, agreement=-1.0) > 0.9


def test_the_member_that_is_right_is_preferred():
    rng, n = np.random.default_rng(2), 40
    truth = rng.normal(size=n + 200)  # nothing that could be learned from x
    x, z = rng.uniform(size=(n + 200, 2)), rng.normal(size=(n + 200, 3))
    z[:, 2] = truth
    mean = mean_at(x, z, truth, n)
    assert np.corrcoef(mean, truth[n:])[0, 1] > 0.9 > np.corrcoef(z[n:].mean(axis=1), truth[n:])[0, 1]
