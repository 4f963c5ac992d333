"""The response scale of the mixture without past tasks, against scipy's multivariate t density in float64."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from dre_jax.methods.hedged_prior.gp_mixture import GaussianProcessMixture
from dre_jax.search.history import make_history
from tests.oracles import compressed_scores, matern52

METHOD, N, CAPACITY = GaussianProcessMixture(), 14, 20
X = np.random.default_rng(0).random((N, 2))
SMOOTH = -np.sum((X - 0.4) ** 2, axis=1)
RESPONSES = {
    "smooth": SMOOTH,
    "third diverged": np.where(X[:, 0] > 0.6, -(10.0 ** (1 + 5 * X[:, 1])), SMOOTH),
    "noise": X[::-1, 1],
}


def density(z):
    """The log-density of scaled responses under the fixed processes, up to their number of components."""
    nu = METHOD.degrees_of_freedom
    covariances = [
        1.0 + matern52(X / (length * np.sqrt(2.0))) + METHOD.processes.noise_var * np.eye(N)
        for length in METHOD.processes.lengthscales
    ]
    return logsumexp([multivariate_t(np.zeros(N), covariance, df=nu).logpdf(z) for covariance in covariances])


def compressed_evidence(y):
    better = y[y > np.median(y)] - np.median(y)
    unit = np.sqrt(np.mean(better**2))
    depth = np.maximum(np.median(y) - y, 0.0)
    deviation = np.std(np.where(depth > 0, -unit * np.log1p(depth / unit), y - np.median(y)))
    return density(compressed_scores(y)) - np.log((1.0 + depth / unit) * deviation).sum()


def linear_evidence(y):
    return density((y - y.mean()) / y.std()) - N * np.log(y.std())


@jax.jit
def spread(linear_log_odds, history, key):
    method = replace(METHOD, linear_log_odds=linear_log_odds)
    return method.response_transform(method.fit_history(None, history, key)).spread


def is_linear(y, linear_log_odds=METHOD.linear_log_odds):
    with jax.enable_x64(True):
        history = make_history(X, y, CAPACITY, np.float64)
        return bool(np.isinf(spread(np.float64(linear_log_odds), history, jax.random.key(0))))


@pytest.mark.parametrize("name", RESPONSES)
def test_the_scale_changes_where_the_evidence_of_scipy_says(name):
    y = RESPONSES[name]
    gain = compressed_evidence(y) - linear_evidence(y)
    for shift in (-0.01, 0.01):
        assert is_linear(y, gain + shift) == (shift > 0)


def test_diverged_responses_are_compressed_and_smooth_ones_are_not():
    assert is_linear(SMOOTH)
    assert not is_linear(RESPONSES["third diverged"])
