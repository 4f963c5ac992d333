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


class Forecasts(NamedTuple):
    """Normal distributions of the last values of n curves of G steps."""

    mean: np.ndarray
    """f64[n], given the known values."""
    variances: np.ndarray
    """f64[n, G + 1]: variance of the last value once the first 0, ..., G values are known; what is not known is at its
    mean. Entries before the length of a curve do not mean anything."""


class _Regression(NamedTuple):
    """Posterior of one regression of the value of a step on the g values before it."""

    coefficients: np.ndarray
    """f64[1 + g], the intercept first."""
    variance: float
    """Mean of the residual variance."""
    whitener: np.ndarray
    """f64[1 + g, 1 + g], the inverse of the Cholesky factor of the second moments."""


class PartialCurves:
    """Posterior of curves, given curves of any lengths, under several priors that the curves weigh."""

    def __init__(self, priors: Sequence[CurvePrior], curves: np.ndarray, lengths: np.ndarray) -> None:
        """Learns from curves f64[n, G], of which the first ``lengths`` i[n] values are known."""
        fits = [_fit(prior, curves, lengths) for prior in priors]
        evidence = np.array([log_evidence for _, log_evidence in fits])
        weights = np.exp(evidence - evidence.max())
        self.weights: np.ndarray = weights / weights.sum()
        """f64[K]: posterior probabilities of the priors."""
        self._regressions = [regressions for regressions, _ in fits]

    def forecast(self, curves: np.ndarray, lengths: np.ndarray) -> Forecasts:
        """Returns the last values of curves f64[n, G], of which the first ``lengths`` i[n] values are known.

        Where the priors disagree, the variance is that of their mixture.
        """
        forecasts = [_forecast(regressions, curves, lengths) for regressions in self._regressions]
        means = np.array([forecast.mean for forecast in forecasts])
        mean = self.weights @ means
        variances = np.tensordot(self.weights, [forecast.variances for forecast in forecasts], 1)
        present = variances[np.arange(len(lengths)), lengths]
        disagreement = self.weights @ (means - mean) ** 2
        return Forecasts(mean, variances * (1.0 + disagreement / np.maximum(present, 1e-12))[:, None])


def _fit(prior: CurvePrior, curves: np.ndarray, lengths: np.ndarray) -> tuple[list[_Regression], float]:
    """Returns the regressions of all steps, and the logarithm of the marginal likelihood of the curves."""
    from scipy.special import gammaln  # importing it takes a tenth of a second

    moments, regressions, log_evidence = _second_moments(prior), list[_Regression](), 0.0
    for g in range(len(prior.mean)):
        known = curves[lengths > g, : g + 1]
        rows, n = np.column_stack([np.ones(len(known)), known]), len(known)
        before = moments[: g + 2, : g + 2]
        jitter = _JITTER * np.trace(before) / (g + 1) * np.eye(g + 2)
        first, last = np.linalg.cholesky(before + jitter), np.linalg.cholesky(before + rows.T @ rows + jitter)
        # The first g + 1 steps have count + g + 2 degrees of freedom if all G steps have count + G + 1.
        degrees = float(prior.covariance_count) + 2 + g
        whitener = np.linalg.inv(last[:-1, :-1])
        coefficients = whitener.T @ last[-1, :-1]
        residual = last[-1, -1] ** 2
        regressions.append(_Regression(coefficients, residual / (degrees + n - 2), whitener))
        log_evidence += gammaln((degrees + n) / 2) - gammaln(degrees / 2) - n / 2 * np.log(np.pi)
        log_evidence += np.log(np.diag(first)[:-1]).sum() - np.log(np.diag(last)[:-1]).sum()
        log_evidence += degrees * np.log(first[-1, -1]) - (degrees + n) / 2 * np.log(residual)
    return regressions, float(log_evidence)


def _second_moments(prior: CurvePrior) -> np.ndarray:
    """Returns f64[1 + G, 1 + G], the sums of products of (1, curve) over the curves that a prior is worth."""
    point = np.concatenate([[1.0], prior.mean])
    moments = np.asarray(prior.mean_count) * np.outer(point, point)
    moments[1:, 1:] += np.asarray(prior.covariance_count) * prior.covariance
    return moments


def _forecast(regressions: Sequence[_Regression], curves: np.ndarray, lengths: np.ndarray) -> Forecasts:
    """Returns forecasts under one prior: each unknown value follows from the means of those before it."""
    n, size = curves.shape
    path, uncertainty = np.ones((n, 1 + size)), np.zeros((n, size))
    for g, (coefficients, _, whitener) in enumerate(regressions):
        known = path[:, : g + 1]
        uncertainty[:, g] = ((known @ whitener.T) ** 2).sum(1)
        path[:, g + 1] = np.where(lengths > g, curves[:, g], known @ coefficients)
    effects = np.zeros(size)
    effects[-1] = 1.0  # of an error at each step on the last value
    for g in range(size - 2, -1, -1):
        effects[g] = sum(regressions[j].coefficients[g + 1] * effects[j] for j in range(g + 1, size))
    noise = np.array([regression.variance for regression in regressions])
    parts = effects**2 * noise * (1.0 + uncertainty)
    variances = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
    return Forecasts(path[:, -1], np.column_stack([variances, np.zeros(n)]))
