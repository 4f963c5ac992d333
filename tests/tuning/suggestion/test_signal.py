"""The evidence of a signal, against integrals on a grid, and on values with one and without."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dre_jax.space.sobol import sobol_points
from dre_jax.tuning.suggestion import signal


def test_the_evidence_is_an_integral_over_mean_and_deviation():
    scores, noise = np.array([0.3, -1.0, 0.9]), np.eye(3)
    correlated = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]])

    log_deviation, unit = np.linspace(-5.0, 8.0, 1301)[:, None, None], np.linspace(-15.0, 15.0, 601)[None, :, None]

    def integral(correlation):
        """Of the density of scores, over means m and log deviations s, with m = unit exp(s)."""
        z = scores / np.exp(log_deviation) - unit
        log_density = multivariate_normal.logpdf(z, cov=correlation) - 3.0 * log_deviation[..., 0]
        return np.sum(np.exp(log_density + log_deviation[..., 0]))

    evidence = signal._evidence(np.zeros((3, 1)), scores, np.ones(3, bool))
    difference = evidence.of(correlated) - evidence.of_noise()
    assert difference == pytest.approx(np.log(integral(correlated) / integral(noise)), abs=1e-3)


def has_signal(points, values):
    return signal.has_signal(points, values, np.ones(len(values), bool))


@pytest.mark.parametrize("n_columns", [1, 2, 6])
def test_signals_are_told_from_noise(n_columns):
    """A slope of one column, a bowl of all, of any scale and with outliers; and the same values in another order."""
    rng = np.random.default_rng(n_columns)
    mistakes = 0
    for _ in range(20):
        points = rng.random((24, n_columns))
        bowl = ((points - 0.4) ** 2).sum(axis=1)
        for values in (1e9 * points[:, -1], np.where(bowl == bowl.max(), np.inf, bowl)):
            assert has_signal(points, values)
            mistakes += has_signal(points, rng.permutation(values))
    assert mistakes <= 8  # of 40


def test_three_waves_are_a_signal():
    for seed in range(5):
        points = sobol_points(32, 2, seed)[:20].astype(float)
        assert has_signal(points, np.sin(18.0 * points[:, 0]) + (points[:, 1] - 0.5) ** 2)


def test_a_long_search_is_seen_from_its_start():
    """Its last trials are at the optimum, where only noise is left."""
    rng = np.random.default_rng(0)
    points = np.vstack([rng.random((30, 2)), 0.4 + 0.2 * rng.random((170, 2))])
    values = ((points - 0.5) ** 2).sum(axis=1) + 0.02 * rng.normal(size=200)
    assert has_signal(points, values)
    assert not has_signal(points[30:], values[30:])
