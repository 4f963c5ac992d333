"""Forecasts from curves of any lengths: those of paused trials count as far as they go.

Under the normal-inverse-Wishart prior of a curve's mean and covariance (`gaussian_processes`), the regressions of each
value on the values before it are independent, and so they are a posteriori if every curve is known up to a step of its
own: each regression learns from the curves that reach its step. That trials were paused for their low values biases
nothing, as the regressions read these values (missing at random; Little and Rubin 2019, chapter 7).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.tuning.curves.gaussian_processes import CurvePrior

_JITTER = 1e-9


class LastValues(NamedTuple):
    """Normal distributions of the last values of n curves."""

    mean: np.ndarray
    """f64[n]"""
    deviation: np.ndarray
    """f64[n], 0 of whole curves."""


class _Regression(NamedTuple):
    """Posterior of the regression of the value of a step on the g values before it."""

    coefficients: np.ndarray
    """f64[1 + g], the intercept first."""
    variance: float
    """Mean of the residual variance."""
    whitener: np.ndarray
    """f64[1 + g, 1 + g], the inverse of the Cholesky factor of the second moments."""


def forecast_last_values(prior: CurvePrior, curves: np.ndarray, lengths: np.ndarray) -> LastValues:
    """Returns the last values of curves f64[n, G], of which the first ``lengths`` i[n] values are known.

    All curves inform the forecasts of each. Values that are not known are replaced by their means one after the other;
    the variance is that of the errors of all steps to come, with the uncertainty of the regressions.

    Example:
      >>> prior = CurvePrior(np.array([-1.0, 0.0]), np.array([[1.0, 1.0], [1.0, 2.0]]), 1.0, 4.0)
      >>> values = forecast_last_values(prior, np.array([[0.0, 1.0], [0.5, 1.5], [1.0, np.nan]]), np.array([2, 2, 1]))
      >>> values.mean.round(2).tolist(), values.deviation.round(2).tolist()
      ([1.0, 1.5, 2.0], [0.0, 0.0, 0.96])
    """
    regressions = _fit(prior, curves, lengths)
    n, size = curves.shape
    path, errors = np.ones((n, 1 + size)), np.zeros((n, size))
    for g, (coefficients, variance, whitener) in enumerate(regressions):
        before = path[:, : g + 1]
        is_known = lengths > g
        errors[:, g] = np.where(is_known, 0.0, variance * (1.0 + ((before @ whitener.T) ** 2).sum(1)))
        path[:, g + 1] = np.where(is_known, curves[:, g], before @ coefficients)
    effects = np.zeros(size)
    effects[-1] = 1.0  # of an error at each step on the last value
    for g in range(size - 2, -1, -1):
        effects[g] = sum(regressions[j].coefficients[g + 1] * effects[j] for j in range(g + 1, size))
    return LastValues(path[:, -1], np.sqrt(errors @ effects**2))


def _fit(prior: CurvePrior, curves: np.ndarray, lengths: np.ndarray) -> Sequence[_Regression]:
    """Returns the regressions of all steps."""
    moments, regressions = _second_moments(prior), list[_Regression]()
    for g in range(len(prior.mean)):
        known = curves[lengths > g, : g + 1]
        rows = np.column_stack([np.ones(len(known)), known])
        total = moments[: g + 2, : g + 2] + rows.T @ rows
        factor = np.linalg.cholesky(total + _JITTER * np.trace(total) / (g + 2) * np.eye(g + 2))
        whitener = np.linalg.inv(factor[:-1, :-1])
        # The first g + 1 steps have count + g + 2 degrees of freedom if all G steps have count + G + 1.
        degrees = float(prior.covariance_count) + 2 + g + len(known)
        variance = float(factor[-1, -1] ** 2 / (degrees - 2))
        regressions.append(_Regression(whitener.T @ factor[-1, :-1], variance, whitener))
    return regressions


def _second_moments(prior: CurvePrior) -> np.ndarray:
    """Returns f64[1 + G, 1 + G], the sums of products of (1, curve) over the curves that a prior is worth."""
    point = np.concatenate([[1.0], prior.mean])
    moments = np.asarray(prior.mean_count) * np.outer(point, point)
    moments[1:, 1:] += np.asarray(prior.covariance_count) * prior.covariance
    return moments
