"""Intervals hold as many new values as they say, for functions that are drawn from the prior of a process itself."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from dre_jax.gp import GPParams
from dre_jax.gp.regression import add_noise, gp_posterior
from dre_jax.gp.student import condition_student_t
from dre_jax.tuning import EngineConfig, Float, Optimizer, Space
from tests import oracles

SHARES = np.array([0.5, 0.8, 0.95])
DRAWS, TRIALS, SLOTS, LENGTH, NOISE, DOF = 4000, 7, 10, 0.4, 0.05, 4.0


def covered(distances, quantile):
    """Shares of draws whose standardised distance is inside of the intervals, compared by a binomial error."""
    inside = [np.mean(np.abs(distances) < quantile(0.5 + share / 2)) for share in SHARES]
    return np.abs(inside - SHARES) / np.sqrt(SHARES * (1 - SHARES) / DRAWS)


@pytest.fixture(scope="module")
def draws():
    """Points f[n, 2] of trials and of a new one, their covariance, and standard normal functions f[DRAWS, n + 1]."""
    rng = np.random.default_rng(0)
    x = rng.random((TRIALS + 1, 2))
    covariance = oracles.matern52(x / LENGTH)
    noisy = covariance + NOISE * np.diag([1.0] * TRIALS + [0.0])
    return x, covariance, rng.multivariate_normal(np.zeros(TRIALS + 1), noisy, DRAWS)


def in_slots(array):
    """The trials' part of an array f[..., n + 1] in slots, f[..., SLOTS]; zeros in the empty ones."""
    return np.pad(array[..., :TRIALS], (*[(0, 0)] * (array.ndim - 1), (0, SLOTS - TRIALS)))


def test_a_gaussian_process_of_known_hyperparameters(draws):
    x, _, y = draws
    slots, where = np.pad(x[:TRIALS], ((0, SLOTS - TRIALS), (0, 0)), constant_values=0.3), np.arange(SLOTS) < TRIALS
    with jax.enable_x64(True):
        params = GPParams(jnp.log(jnp.full(2, LENGTH)), jnp.zeros(()), jnp.log(jnp.asarray(NOISE)), "matern52")
        predict = jax.jit(jax.vmap(lambda y: gp_posterior(params, slots, y, where, x[TRIALS:])))
        mean, variance = map(np.asarray, predict(jnp.asarray(in_slots(y))))
    assert (covered((y[:, TRIALS] - mean[:, 0]) / np.sqrt(variance[:, 0]), norm.ppf) < 3).all()


def test_a_student_t_process_of_a_variance_scale_that_is_drawn(draws):
    _, covariance, y = draws
    scale = 1.0 / np.random.default_rng(1).gamma(DOF / 2, 2 / DOF, DRAWS)
    y = y * np.sqrt(scale)[:, None]
    kernel, cross = in_slots(in_slots(covariance).T), in_slots(covariance[TRIALS:]).T
    with jax.enable_x64(True):
        where = np.arange(SLOTS) < TRIALS
        matrix = add_noise(jnp.asarray(kernel), jnp.float64(NOISE), where)
        condition = partial(condition_student_t, matrix, where=where, degrees_of_freedom=DOF)
        predict = jax.jit(jax.vmap(lambda y: condition(y=y).predict(cross, jnp.ones(1))))
        mean, variance = map(np.asarray, predict(jnp.asarray(in_slots(y))))
    freedom = DOF + TRIALS
    scales = np.sqrt(variance[:, 0] * (freedom - 2) / freedom)
    assert (covered((y[:, TRIALS] - mean[:, 0]) / scales, partial(student_t.ppf, df=freedom)) < 3).all()


SPACE = Space({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)})


def drawn_from_mixture(x, rng):
    """Values by one of the processes of `gp-mixture` that have fixed hyperparameters, with the noise and the offset."""
    length = rng.choice((0.1, 0.25, 0.6)) * np.sqrt(x.shape[1])
    covariance = oracles.matern52(x / length) + 1.0 + 1e-3 * np.eye(len(x))
    return rng.multivariate_normal(np.zeros(len(x)), covariance / rng.gamma(2.5, 1 / 2.5))


def drawn_from_gp(x, rng):
    """Values by a process whose length scales and noise come from the priors of `gp`."""
    lengths = rng.lognormal(np.sqrt(2.0) + 0.5 * np.log(x.shape[1]), np.sqrt(3.0), x.shape[1])
    covariance = oracles.matern52(x / lengths) + rng.lognormal(-6.0, 2.0) * np.eye(len(x))
    return rng.multivariate_normal(np.zeros(len(x)), covariance)


@pytest.mark.thorough
@pytest.mark.parametrize(
    # The most likely hyperparameters, which `gp` has, are somewhat overconfident: they have no error.
    ("method", "draw", "overconfidence"),
    [("gp-mixture", drawn_from_mixture, 0.0), ("gp", drawn_from_gp, 0.08)],
)
def test_methods_on_functions_of_their_prior(method, draw, overconfidence):
    quantiles, coverage = np.concatenate([0.5 - SHARES / 2, 0.5 + SHARES / 2]), []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.random((75, 2))
        y, configurations = draw(x, rng), [dict(zip(SPACE, row, strict=True)) for row in x]
        optimizer = Optimizer(SPACE, config=EngineConfig(method=method))
        for params, value in zip(configurations[:25], y, strict=False):
            optimizer.add(params, value)
        predicted = optimizer.predict(configurations[25:], quantiles=quantiles).quantiles
        low, high = predicted[: len(SHARES)], predicted[len(SHARES) :]
        coverage.append(((low <= y[25:]) & (y[25:] <= high)).mean(axis=1))
    mean, error = np.mean(coverage, axis=0), np.std(coverage, axis=0, ddof=1) / np.sqrt(len(coverage))
    assert (mean > SHARES - overconfidence - 3 * error).all(), (mean, error)
    assert (mean < SHARES + 3 * error).all(), (mean, error)
