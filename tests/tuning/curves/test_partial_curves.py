"""Forecasts from curves of any lengths, against Student's t and draws of the prior."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.tuning.curves.gaussian_processes import condition, predict_last
from dre_jax.tuning.curves.partial_curves import forecast_last_values
from dre_jax.tuning.curves.priors import generic_prior, wandering_prior

STEPS = np.array([0.1, 0.3, 1.0])


@pytest.fixture
def curves() -> np.ndarray:
    return np.cumsum(np.random.default_rng(0).normal(size=(7, 3)), axis=1)


@pytest.mark.parametrize("make", [generic_prior, wandering_prior])
def test_last_value_after_whole_curves_is_students_t(make, curves: np.ndarray) -> None:
    prior, new = make(STEPS), np.array([[0.3, -0.2, np.nan]])
    values = forecast_last_values(prior, np.vstack([curves, new]), np.array([3] * 7 + [2]))
    student = predict_last(condition(prior, curves, np.ones(7)), new)
    degrees = student.degrees[-1]
    # The new curve informs the regressions of its own known steps, of which the last one reads the values alone.
    np.testing.assert_allclose(values.mean[-1], student.location[0, -1], rtol=1e-4)
    deviation = student.scale[0, -1] * np.sqrt(degrees / (degrees - 2.0))
    np.testing.assert_allclose(values.deviation[-1], deviation, rtol=1e-4)


def test_a_curve_of_two_steps_is_a_regression_with_an_intercept(curves: np.ndarray) -> None:
    prior = wandering_prior(STEPS[:2])._replace(covariance_count=2.0, mean_count=1e-6)
    prior = prior._replace(covariance=prior.covariance * 1e-6)
    many = np.random.default_rng(1).normal(size=(50, 2))
    many[:, 1] += 2.0 * many[:, 0] + 1.0
    values = forecast_last_values(prior, np.vstack([many, [[0.7, np.nan]]]), np.array([2] * 50 + [1]))
    fit = stats.linregress(many[:, 0], many[:, 1])
    np.testing.assert_allclose(values.mean[-1], fit.intercept + 0.7 * fit.slope, rtol=1e-3)


def test_a_whole_curve_is_known_and_unknown_values_do_not_matter(curves: np.ndarray) -> None:
    prior, lengths = wandering_prior(STEPS), np.array([3, 3, 2, 2, 1, 1, 1])
    values = forecast_last_values(prior, curves, lengths)
    np.testing.assert_array_equal(values.mean[:2], curves[:2, 2])
    np.testing.assert_array_equal(values.deviation[:2], 0.0)
    assert values.deviation[2:4].max() < values.deviation[4:].min()
    others = np.where(np.arange(3) < lengths[:, None], curves, 1e6)
    np.testing.assert_array_equal(forecast_last_values(prior, others, lengths).mean, values.mean)


def test_forecasts_of_draws_of_the_prior_cover_their_values() -> None:
    """Also where the best curves went on, as those of paused trials do."""
    random, covered = np.random.default_rng(2), []
    prior = wandering_prior(STEPS)._replace(covariance_count=20.0)
    for _ in range(80):
        covariance = stats.invwishart(df=24, scale=20 * prior.covariance).rvs(random_state=random)
        mean = random.multivariate_normal(prior.mean, covariance / float(prior.mean_count))
        curves = random.multivariate_normal(mean, covariance, size=12)
        curves = curves[np.argsort(-curves[:, 0])]
        curves[:6] = curves[:6][np.argsort(-curves[:6, 1])]
        lengths = np.array([3] * 3 + [2] * 3 + [1] * 6)
        values = forecast_last_values(prior, curves, lengths)
        errors = np.abs(curves[3:, 2] - values.mean[3:])
        covered += list(errors < stats.norm.ppf(0.9) * values.deviation[3:])
    assert 0.76 < np.mean(covered) < 0.84
