"""Forecasts from curves of any lengths, against the closed forms of scipy and draws of the prior."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.tuning.curves.gaussian_processes import CurvePrior, condition, predict_last
from dre_jax.tuning.curves.partial_curves import PartialCurves
from dre_jax.tuning.curves.priors import generic_prior, wandering_prior

STEPS = np.array([0.1, 0.3, 1.0])
PRIORS = [generic_prior(STEPS), wandering_prior(STEPS)]


@pytest.fixture
def curves() -> np.ndarray:
    return np.cumsum(np.random.default_rng(0).normal(size=(7, 3)), axis=1)


def log_evidence(prior: CurvePrior, curves: np.ndarray) -> float:
    """The log density of curves, one after the other, each a multivariate Student's t given those before."""
    total, size = 0.0, curves.shape[1]
    for i, curve in enumerate(curves):
        posterior = condition(prior, curves[:i], np.ones(i)) if i else prior
        count, mean_count = float(posterior.covariance_count), float(posterior.mean_count)
        degrees = count + 2.0
        shape = count * posterior.covariance * (1.0 + 1.0 / mean_count) / degrees
        total += stats.multivariate_t.logpdf(curve, posterior.mean, shape[:size, :size], df=degrees)
    return total


def log_ratio(curves: np.ndarray, lengths: np.ndarray) -> float:
    weights = PartialCurves(PRIORS, curves, lengths).weights
    return float(np.log(weights[0] / weights[1]))


def test_last_value_of_whole_curves_is_students_t(curves: np.ndarray) -> None:
    prior, new = PRIORS[1], np.array([[0.3, -0.2, np.nan]])
    forecast = PartialCurves([prior], curves, np.full(7, 3)).forecast(np.nan_to_num(new), np.array([2]))
    student = predict_last(condition(prior, curves, np.ones(7)), new)
    degrees = student.degrees[-1]
    np.testing.assert_allclose(forecast.mean[0], student.location[0, -1], rtol=1e-4)
    np.testing.assert_allclose(forecast.variances[0, 2], student.scale[0, -1] ** 2 * degrees / (degrees - 2), rtol=1e-4)
    assert forecast.variances[0, 3] == 0.0


def test_evidence_of_whole_curves_is_that_of_students_t(curves: np.ndarray) -> None:
    expected = log_evidence(PRIORS[0], curves) - log_evidence(PRIORS[1], curves)
    np.testing.assert_allclose(log_ratio(curves, np.full(7, 3)), expected, rtol=1e-5)


def test_evidence_of_beginnings_is_that_of_the_first_steps(curves: np.ndarray) -> None:
    def leading(prior: CurvePrior) -> CurvePrior:
        return prior._replace(mean=prior.mean[:2], covariance=prior.covariance[:2, :2])

    expected = np.subtract(*(log_evidence(leading(prior), curves[:, :2]) for prior in PRIORS))
    np.testing.assert_allclose(log_ratio(curves, np.full(7, 2)), expected, rtol=1e-5)


def test_evidence_of_different_lengths_is_the_mean_over_draws(curves: np.ndarray) -> None:
    curves, lengths, draws = curves[:3, :2], np.array([2, 1, 1]), 40_000

    def evidence(prior: CurvePrior) -> float:
        count = float(prior.covariance_count)
        random = np.random.default_rng(1)
        covariances = stats.invwishart(df=count + 3, scale=count * prior.covariance).rvs(draws, random_state=random)
        factors = np.linalg.cholesky(covariances / float(prior.mean_count))
        means = prior.mean + (factors @ random.normal(size=(draws, 2, 1)))[..., 0]
        density = np.ones(draws)
        for curve, length in zip(curves, lengths, strict=True):
            covariance, mean = covariances[:, :length, :length], means[:, :length]
            deviation = curve[:length] - mean
            solved = np.linalg.solve(covariance, deviation[..., None])[..., 0]
            density *= np.exp(-0.5 * (deviation * solved).sum(1))
            density /= np.sqrt(np.linalg.det(2.0 * np.pi * covariance))
        return float(density.mean())

    two_steps = [prior._replace(mean=prior.mean[:2], covariance=prior.covariance[:2, :2]) for prior in PRIORS]
    weights = PartialCurves(two_steps, curves, lengths).weights
    np.testing.assert_allclose(weights[0] / weights[1], evidence(two_steps[0]) / evidence(two_steps[1]), rtol=0.05)


def test_variance_falls_with_the_length_and_unknown_values_do_not_matter(curves: np.ndarray) -> None:
    model = PartialCurves(PRIORS, curves, np.array([3, 3, 2, 2, 1, 1, 1]))
    forecast = model.forecast(curves[:1], np.array([1]))
    assert np.all(np.diff(forecast.variances[0, 1:]) < 0.0)
    others = np.concatenate([curves[:1, :1], [[1e6, -1e6]]], axis=1)
    np.testing.assert_array_equal(model.forecast(others, np.array([1])).mean, forecast.mean)


def test_forecasts_of_draws_of_the_prior_cover_their_values() -> None:
    random, covered = np.random.default_rng(2), []
    prior = wandering_prior(STEPS)._replace(covariance_count=20.0)
    for _ in range(60):
        covariance = stats.invwishart(df=24, scale=20 * prior.covariance).rvs(random_state=random)
        mean = random.multivariate_normal(prior.mean, covariance / float(prior.mean_count))
        curves = random.multivariate_normal(mean, covariance, size=12)
        lengths = np.array([3] * 3 + [2] * 3 + [1] * 6)
        forecast = PartialCurves([prior], curves, lengths).forecast(curves, lengths)
        deviation = np.sqrt(forecast.variances[np.arange(12), lengths])[3:]
        covered += list(np.abs(curves[3:, 2] - forecast.mean[3:]) < stats.norm.ppf(0.9) * deviation)
    assert 0.75 < np.mean(covered) < 0.85
