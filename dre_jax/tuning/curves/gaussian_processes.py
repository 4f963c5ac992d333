"""Gaussian processes of learning curves on a grid of steps, whose mean and covariance are learned.

Curves are draws of one Gaussian with unknown mean and covariance under their conjugate prior, the
normal-inverse-Wishart distribution (Gelman et al., Bayesian Data Analysis, section 3.6). The predictive distribution of
a curve is a multivariate Student-t, and so is the distribution of its last value given the values before. It is wide
for a curve unlike the others.
"""

from typing import NamedTuple

import numpy as np

_JITTER = 1e-6


class CurvePrior(NamedTuple):
    """Normal-inverse-Wishart distribution of the mean and the covariance of curves at G steps."""

    mean: np.ndarray
    """f64[..., G]."""
    covariance: np.ndarray
    """f64[..., G, G], expected."""
    mean_count: np.ndarray | float
    """f64[...]: number of curves that the mean is worth."""
    covariance_count: np.ndarray | float
    """f64[...]: number of curves that the covariance is worth."""


class Predictions(NamedTuple):
    """Student-t distributions of the last value of curves, each given its first 1, ..., G - 1 values."""

    location: np.ndarray
    """f64[..., G - 1]."""
    scale: np.ndarray
    """f64[..., G - 1]."""
    degrees: np.ndarray
    """f64[..., G - 1], of freedom."""


def condition(prior: CurvePrior, curves: np.ndarray, weights: np.ndarray) -> CurvePrior:
    """Returns posteriors of mean and covariance, given curves f64[n, G] that are worth f64[..., n] curves each."""
    n = weights.sum(-1)
    centre = weights @ curves / np.maximum(n, 1e-300)[..., None]
    deviations = curves - centre[..., None, :]
    scatter = (weights[..., None] * deviations).swapaxes(-1, -2) @ deviations
    shift = centre - prior.mean
    mean_count, covariance_count = prior.mean_count + n, prior.covariance_count + n
    between = (prior.mean_count * n / mean_count)[..., None, None] * shift[..., None] * shift[..., None, :]
    total = prior.covariance_count * prior.covariance + scatter + between
    mean = prior.mean + (n / mean_count)[..., None] * shift
    return CurvePrior(mean, total / covariance_count[..., None, None], mean_count, covariance_count)


def predict_last(prior: CurvePrior, curves: np.ndarray) -> Predictions:
    """Returns the prediction of the last value by each beginning of curves f64[..., G], under each prior.

    With the Cholesky factor L of the covariance, the first t values determine the first t entries of the residuals L^-1
    (curve - mean), so one factor has the conditional distributions of all t. The last value does not count, nor do
    values after a NaN.
    """
    size = prior.mean.shape[-1]
    covariance = prior.covariance * (1 + 1 / np.asarray(prior.mean_count))[..., None, None]
    jitter = _JITTER * np.trace(covariance, axis1=-2, axis2=-1) / size
    factor = np.linalg.cholesky(covariance + jitter[..., None, None] * np.eye(size))
    residuals = np.linalg.solve(factor, np.nan_to_num(curves - prior.mean)[..., None])[..., :-1, 0]
    last = factor[..., -1, :]
    location = prior.mean[..., -1:] + np.cumsum(last[..., :-1] * residuals, -1)
    variance = np.cumsum(last[..., ::-1] ** 2, -1)[..., ::-1][..., 1:]
    # With covariance_count + G + 1 degrees of freedom, the mean of the inverse-Wishart distribution is the covariance.
    count = np.asarray(prior.covariance_count)[..., None]
    degrees = count + 2 + np.arange(1, size)
    inflation = (count + np.cumsum(residuals**2, -1)) / degrees
    return Predictions(location, np.sqrt(variance * inflation), degrees)


def log_density(predictions: Predictions, values: np.ndarray) -> np.ndarray:
    """Returns the log densities of values under Student-t distributions."""
    from scipy.special import gammaln  # importing it takes a tenth of a second

    location, scale, degrees = predictions
    normaliser = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(np.pi * degrees) / 2 - np.log(scale)
    return normaliser - (degrees + 1) / 2 * np.log1p(((values - location) / scale) ** 2 / degrees)
