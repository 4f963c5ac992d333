"""Quantiles of mixtures of Gaussians, against SciPy's root finder."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dre_jax.tuning.engine.predictions import mixture_quantiles


def test_quantiles_are_roots_of_the_distribution():
    """Modes may be far apart, of very different widths, and have hardly any weight."""
    rng = np.random.default_rng(0)
    weight = np.array([0.3, 0.55, 0.1, 0.05 - 1e-12, 1e-12])
    mean = np.vstack([rng.normal(0, 1, (5, 5)), 100.0 * rng.normal(0, 1, (5, 5)), np.zeros((1, 5))])
    deviation = np.vstack([rng.exponential(1.0, (10, 5)) ** 3 + 1e-6, np.ones((1, 5))])
    shares = np.array([1e-4, 0.05, 0.3, 0.5, 0.95, 0.999])
    quantiles = mixture_quantiles(shares, weight, mean, deviation)
    assert quantiles.shape == (6, 11)
    for i in range(11):
        for share, quantile in zip(shares, quantiles[:, i], strict=True):

            def excess(x, i=i, share=share):
                return norm.cdf(x, mean[i], deviation[i]) @ weight - share

            expected = brentq(excess, -1e4, 1e4, xtol=1e-12)
            assert abs(excess(quantile)) < 1e-6 or abs(quantile - expected) < 1e-6
    np.testing.assert_allclose(quantiles[:, -1], norm.ppf(shares), atol=1e-8)


def test_no_shares_and_no_mixtures():
    one = np.ones((3, 1))
    assert mixture_quantiles(np.empty(0), np.ones(1), one, one).shape == (0, 3)
    assert mixture_quantiles(np.array([0.5]), np.ones(1), one[:0], one[:0]).shape == (1, 0)
