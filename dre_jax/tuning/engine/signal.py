"""Whether values depend on where they were found: the evidence of a process with a signal against noise alone.

The values' normal scores y have a Gaussian process of a constant mean and a variance that are integrated out (O'Hagan
1978), so that the evidence of a correlation matrix C is, up to a factor that all have,

    |C|^(-1/2) (1' C^-1 1)^(-1/2) S^(-(n - 1) / 2),     S = y' C^-1 y - (1' C^-1 y)^2 / (1' C^-1 1).

Noise alone has C = I. A signal has C = r K + (1 - r) I, half of the weight with a Matern 5/2 correlation K of all
coordinates, and half with one of a single coordinate, in equal parts for a few length scales and shares r.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.data.tasks import spaced_rows
from dre_jax.gp.student import log_t_density

Floats = npt.NDArray[np.float64]

LENGTHS = (0.15, 0.5, 1.5)
"""Length scales of all coordinates, in units of the square root of their number."""
COORDINATE_LENGTHS = (0.07, 0.2, 0.7)
SHARES = (0.5, 0.9, 0.99)
NOISY_SHARES = (0.25, 0.5, 0.75, 0.9, 0.99)
"""Shares of a signal from which the noise of predictions is estimated."""
MAX_TRIALS = 64


def has_signal(points: Floats, values: Floats) -> bool:
    """Returns whether values f64[n] at points f64[n, P] of the unit cube are a signal rather than noise alone.

    Of more than 64 trials, 64 count, evenly spaced in time.
    """
    from scipy.special import ndtri  # importing it takes a tenth of a second

    rows = spaced_rows(len(values), MAX_TRIALS)
    points, (_, inverse, counts) = points[rows], np.unique(values[rows], return_inverse=True, return_counts=True)
    scores = ndtri((np.cumsum(counts) - counts / 2) / len(rows))[inverse]
    noise, targets = np.eye(len(rows)), np.stack([scores, np.ones(len(rows))], axis=1)
    log_noise, total = _log_evidence(noise, targets), -math.inf
    for _, log_signal in _log_signals(points, targets, SHARES):
        total = float(np.logaddexp(total, log_signal))
        if total > log_noise:  # the others would add to it
            return True
    return False


def noise_share(points: Floats, values: Floats) -> float:
    """Returns a share of noise in the variance of values f64[n] at points f64[n, P] of the unit cube.

    It is r / (1 + r) of the expected ratio r of noise to signal, beyond the least, at most three quarters; all ratios
    are equally likely before the first value. Of more than 64 trials, 64 count, evenly spaced in time. Values are
    between 0 and 1.
    """
    rows = spaced_rows(len(values), MAX_TRIALS)
    deviation = values[rows].std()
    if not deviation:
        return 0.0
    scores = (values[rows] - values[rows].mean()) / deviation
    targets = np.stack([scores, np.ones(len(rows))], axis=1)
    signals = _log_signals(points[rows], targets, NOISY_SHARES)
    ratios, logs = np.array([(1.0 / share - 1.0, log_signal) for share, log_signal in signals]).T
    weights = np.exp(logs - logs.max())
    ratio = float(weights @ ratios / weights.sum() - ratios.min())
    return ratio / (1.0 + ratio)


def _log_signals(points: Floats, targets: Floats, shares: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Yields shares of a signal with the log evidence of targets f64[n, 2] under each process, times its weight."""
    apart = np.abs(points[:, None] - points[None])
    together = np.sqrt((apart**2).mean(axis=-1))
    noise = np.eye(len(points))
    for length, coordinate, log_weight in zip(*length_scales(points.shape[1]), strict=True):
        correlation = matern52((together if coordinate < 0 else apart[..., coordinate]) / length)
        for share in shares:
            yield share, _log_evidence(share * correlation + (1.0 - share) * noise, targets) + log_weight


def length_scales(n_parts: int) -> tuple[Floats, npt.NDArray[np.int32], Floats]:
    """Returns length scales, the coordinate of each, -1 for all, and the log weight of each and of one share."""
    lengths = [*LENGTHS, *(length for length in COORDINATE_LENGTHS for _ in range(n_parts))]
    coordinates = [-1] * len(LENGTHS) + list(range(n_parts)) * len(COORDINATE_LENGTHS)
    halves = [len(LENGTHS) if i < 0 else len(COORDINATE_LENGTHS) * n_parts for i in coordinates]
    log_weights = [math.log(0.5 / count / len(SHARES)) for count in halves]
    return np.array(lengths), np.array(coordinates, np.int32), np.array(log_weights)


def matern52(distance: Any, xp: Any = np) -> Any:
    """Returns the correlation at distances f[...] in units of the length scale, with NumPy or JAX as `xp`."""
    scaled = math.sqrt(5.0) * distance
    return (1.0 + scaled + scaled**2 / 3.0) * xp.exp(-scaled)


def _log_evidence(correlation: Floats, targets: Floats) -> float:
    """Returns the log evidence of a correlation matrix f64[n, n] for targets f64[n, 2], scores and ones."""
    factor = np.linalg.cholesky(correlation)
    return float(log_evidence_of_factor(factor, np.linalg.solve(factor, targets), len(targets)))


def log_evidence_of_factor(factor: Any, whitened_targets: Any, n: Any, xp: Any = np) -> Any:
    """Returns the log evidence of n scores and ones, whitened f[n, 2], given the Cholesky factor; NumPy or JAX."""
    squares, ones = xp.sum(whitened_targets**2, axis=0)
    squared_residual = squares - xp.sum(whitened_targets[:, 0] * whitened_targets[:, 1]) ** 2 / ones
    half_log_determinant = xp.sum(xp.log(xp.diagonal(factor))) + 0.5 * xp.log(ones)
    return log_t_density(squared_residual, half_log_determinant, n - 1, None, xp)
