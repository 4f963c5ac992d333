"""Weights of hypotheses against a general optimiser."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from dre_jax.methods.hedged_prior.weights import fit_mixture_weights

INITIAL, STRENGTH = np.array([0.6, 0.3, 0.1]), 4.0


def random_log_likelihood(n_tasks):
    return np.random.default_rng(0).normal([0.0, 1.0, 0.0], 3.0, (n_tasks, 2, 3))


def test_weights_maximise_the_posterior_density():
    log_likelihood = random_log_likelihood(6)

    def negative(free):
        log_weight = log_softmax(np.append(free, 0.0))
        return -(logsumexp(log_weight + log_likelihood, axis=-1).mean(axis=1).sum() + STRENGTH * INITIAL @ log_weight)

    expected = np.exp(log_softmax(np.append(minimize(negative, np.zeros(2), tol=1e-10).x, 0.0)))
    np.testing.assert_allclose(fit_mixture_weights(INITIAL, log_likelihood, STRENGTH), expected, atol=1e-5)


def test_constants_of_histories_do_not_change_the_weights_and_equal_likelihoods_keep_them():
    log_likelihood = random_log_likelihood(4)
    shifted = log_likelihood + np.random.default_rng(1).normal(size=(4, 2, 1))
    np.testing.assert_allclose(
        fit_mixture_weights(INITIAL, shifted, STRENGTH),
        fit_mixture_weights(INITIAL, log_likelihood, STRENGTH),
        rtol=1e-9,
    )
    np.testing.assert_allclose(fit_mixture_weights(INITIAL, np.zeros((4, 2, 3)), STRENGTH), INITIAL, rtol=1e-12)
