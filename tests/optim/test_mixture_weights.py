"""Weights of mixtures against scipy."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from dre_jax.optim.mixture_weights import fit_mixture_weights


def test_weights_of_a_mixture_maximise_the_posterior_density():
    initial, strength = np.array([0.6, 0.3, 0.1]), 4.0
    log_likelihood = np.random.default_rng(0).normal([0.0, 1.0, 0.0], 3.0, (6, 2, 3))

    def negative(free):
        log_weight = log_softmax(np.append(free, 0.0))
        return -(logsumexp(log_weight + log_likelihood, axis=-1).mean(axis=1).sum() + strength * initial @ log_weight)

    expected = np.exp(log_softmax(np.append(minimize(negative, np.zeros(2), tol=1e-10).x, 0.0)))
    np.testing.assert_allclose(fit_mixture_weights(initial, log_likelihood, strength), expected, atol=1e-5)
