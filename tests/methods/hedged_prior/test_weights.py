"""Weights of hypotheses against a general optimiser."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from dre_jax.methods.hedged_prior.weights import most_likely

BEFORE, STRENGTH = np.array([0.6, 0.3, 0.1]), 4.0


def evidence(n_tasks):
    return np.random.default_rng(0).normal([0.0, 1.0, 0.0], 3.0, (n_tasks, 2, 3))


def test_the_weights_are_the_highest_point_of_the_posterior():
    found = evidence(6)

    def negative(free):
        log_weight = log_softmax(np.append(free, 0.0))
        return -(logsumexp(log_weight + found, axis=-1).mean(axis=1).sum() + STRENGTH * BEFORE @ log_weight)

    expected = np.exp(log_softmax(np.append(minimize(negative, np.zeros(2), tol=1e-10).x, 0.0)))
    np.testing.assert_allclose(most_likely(BEFORE, found, STRENGTH), expected, atol=1e-5)


def test_a_constant_of_a_history_changes_nothing_and_no_evidence_leaves_the_weights():
    found = evidence(4)
    shifted = found + np.random.default_rng(1).normal(size=(4, 2, 1))
    np.testing.assert_allclose(most_likely(BEFORE, shifted, STRENGTH), most_likely(BEFORE, found, STRENGTH), rtol=1e-9)
    np.testing.assert_allclose(most_likely(BEFORE, np.zeros((4, 2, 3)), STRENGTH), BEFORE, rtol=1e-12)
