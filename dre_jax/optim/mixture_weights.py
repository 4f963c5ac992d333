"""Weights of a mixture of known densities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_STEPS = 200


def fit_mixture_weights(initial: Floats, log_likelihood: Floats, strength: float) -> Floats:
    """Returns the weights pi, f64[H], of the highest posterior density (empirical Bayes; Robbins 1956).

    With E_ahs the marginal likelihood of history s of task a under hypothesis h, the weights maximise

        sum_a 1/S sum_s log sum_h pi_h E_ahs + C sum_h pi^0_h log pi_h.

    Expectation-maximisation counts every task once and the initial weights pi^0, f64[H], as C tasks (``strength``). The
    likelihoods f64[A, S, H] may lack a constant for each history.
    """
    from scipy.special import logsumexp  # importing it takes a tenth of a second

    weights = initial
    for _ in range(_STEPS):
        log_share = np.log(weights) + log_likelihood
        share = np.exp(log_share - logsumexp(log_share, axis=-1, keepdims=True))
        weights = (strength * initial + share.mean(axis=1).sum(axis=0)) / (strength + len(log_likelihood))
    return weights
