"""Gaussian process classification against SciPy in float64, with empty slots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm

from dre_jax.gp import GPParams
from dre_jax.gp import classification as gp
from tests import oracles

LENGTH, SCALE = np.array([0.3, 1.7]), 6.0
NEW = np.random.default_rng(9).uniform(size=(7, 2))


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def trials(n=14, chance=0.15):
    """Points and labels, of which a few are on the wrong side of a line."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(n, 2))
    return x, np.where((x[:, 0] > 0.5) ^ (rng.random(n) < chance), -1.0, 1.0)


def covariance(logs, a, b):
    return np.exp(logs[-1]) * oracles.matern52(a / np.exp(logs[:-1]), b / np.exp(logs[:-1])) + gp._CONSTANT_VAR


def mode_and_evidence(matrix, labels):
    """The mode by a general optimiser over whitened signals, and equation 3.32."""
    lower = np.linalg.cholesky(matrix + 1e-12 * np.eye(len(labels)))

    def minus_density(white):
        signal = lower @ white
        ratio = np.exp(norm.logpdf(signal) - norm.logcdf(labels * signal))
        return 0.5 * white @ white - norm.logcdf(labels * signal).sum(), white - lower.T @ (labels * ratio)

    end = minimize(minus_density, np.zeros(len(labels)), jac=True, method="BFGS", options={"gtol": 1e-10})
    signal = lower @ end.x
    ratio = np.exp(norm.logpdf(signal) - norm.logcdf(labels * signal))
    precision = np.diag(ratio * (ratio + labels * signal))
    return signal, -end.fun - 0.5 * np.linalg.slogdet(np.eye(len(labels)) + matrix @ precision)[1]


def log_probability(logs, x, labels, new):
    """Of label 1, by a classifier and by chance, weighted by their evidence, less one in its logarithm."""
    matrix = covariance(logs, x, x)
    by_row = mode_and_evidence(matrix, labels)
    (signal, place), (rate, chance) = by_row, mode_and_evidence(np.full_like(matrix, gp._CONSTANT_VAR), labels)
    weight = 1.0 / (1.0 + np.exp(chance - place + 1.0))
    by_place = norm.cdf(covariance(logs, new, x) @ np.linalg.solve(matrix, signal))
    return np.log(weight * by_place + (1.0 - weight) * norm.cdf(rate.mean()))


LOGS = np.append(np.log(LENGTH), np.log(SCALE))


def params(logs):
    return GPParams(jnp.asarray(logs[:-1]), jnp.asarray(logs[-1]), jnp.asarray(0.0))


predict = jax.jit(gp.log_probability)


@jax.jit
def evidence(logs, x, labels, where):
    params = GPParams(logs[:-1], logs[-1], jnp.zeros(()))
    return gp.log_evidence(gp.latent_covariance(params, x, x), labels, where)


def test_mode_and_probability():
    x, labels = trials()
    matrix = covariance(LOGS, x, x)
    signal, _ = mode_and_evidence(matrix, labels)
    padded_x, padded_labels, where = oracles.in_slots(19, x, labels, dtype=np.float64)
    mode = jax.jit(gp.find_mode)(gp.latent_covariance(params(LOGS), padded_x, padded_x), padded_labels, where)
    np.testing.assert_allclose(mode.signal[:14], signal, atol=1e-4)
    classifier = jax.jit(gp.condition_classifier)(params(LOGS), padded_x, padded_labels, where)
    result = predict(classifier, padded_x, NEW)
    np.testing.assert_allclose(result, log_probability(LOGS, x, labels, NEW), rtol=1e-3)


def test_evidence_and_its_gradient():
    x, labels = trials()
    slots = oracles.in_slots(19, x, labels, dtype=np.float64)
    result, gradient = jax.value_and_grad(evidence)(jnp.asarray(LOGS), *slots)
    reference = lambda logs: mode_and_evidence(covariance(logs, x, x), labels)[1]  # noqa: E731
    np.testing.assert_allclose(result, reference(LOGS), rtol=1e-6)
    np.testing.assert_allclose(gradient, approx_fprime(LOGS, reference, 1e-4), rtol=1e-2, atol=1e-3)


@pytest.mark.slow
def test_labels_with_and_without_a_pattern():
    """Beside a line the probability is near 0 and 1; by chance it is near the rate everywhere."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(64, 2))
    fit = jax.jit(lambda *trials: gp.condition_classifier(gp.fit_classifier(*trials), *trials))
    far = np.array([[0.1, 0.5], [0.9, 0.5]])
    divided = fit(x, np.where(x[:, 0] > 0.5, -1.0, 1.0), np.ones(64, bool))
    probabilities = np.exp(predict(divided, x, far))
    assert probabilities[0] > 0.99
    assert probabilities[1] < 0.01
    by_chance = fit(x, np.where(rng.random(64) < 0.1, -1.0, 1.0), np.ones(64, bool))
    assert np.exp(predict(by_chance, x, NEW)).min() > 0.7


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_equal_labels_and_equal_rows(label):
    x, labels = np.full((20, 2), 0.5), np.full(20, label)
    classifier = jax.jit(gp.condition_classifier)(params(LOGS), x, labels, np.ones(20, bool))
    log_p = predict(classifier, x, NEW)
    assert np.isfinite(log_p).all()
    assert ((log_p > np.log(0.5)) == (label > 0)).all()
    assert classifier.log_odds > 9.0  # not by chance: a search moves on from where all failed
