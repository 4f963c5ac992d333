"""Weights of a mixture of known densities."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

_STEPS = 200


def fit_mixture_weights(
    initial: Float64[np.ndarray, " H"], log_likelihood: Float64[np.ndarray, "A S H"], strength: float
) -> Float64[np.ndarray, " H"]:
    """Returns the weights pi of the highest posterior density (empirical Bayes; Robbins 1956).

    With E_ahs the marginal likelihood of history s of task a under hypothesis h, the weights maximise

        sum_a 1/S sum_s log sum_h pi_h E_ahs + C sum_h pi^0_h log pi_h.

    Expectation-maximisation counts every task once and the initial weights pi^0 as C tasks (``strength``). The
    likelihoods may lack a constant for each history.
    """
    from scipy.special import logsumexp  # importing it takes a tenth of a second

    weights = initial
    for _ in range(_STEPS):
        log_share = np.log(weights) + log_likelihood
        share = np.exp(log_share - logsumexp(log_share, axis=-1, keepdims=True))
        weights = (strength * initial + share.mean(axis=1).sum(axis=0)) / (strength + len(log_likelihood))
    return weights
