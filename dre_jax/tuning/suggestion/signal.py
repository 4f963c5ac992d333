"""Whether values depend on where they were found: the evidence of a process with a signal against noise alone.

The values' normal scores y have a Gaussian process of a constant mean and a variance that are integrated out (O'Hagan
1978), so that the evidence of a correlation matrix C is, up to a factor that all have,

    |C|^(-1/2) (1' C^-1 1)^(-1/2) S^(-(n - 1) / 2),     S = y' C^-1 y - (1' C^-1 y)^2 / (1' C^-1 1).

Noise alone has C = I. A signal has C = r K + (1 - r) I, half of the weight with a Matern 5/2 correlation K of all
coordinates, and half with one of a single coordinate, in equal parts for a few length scales and shares r.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int32

from dre_jax.gp.kernels import matern52_of_distance
from dre_jax.gp.lapack import cholesky, solve_lower
from dre_jax.gp.student import log_t_density
from dre_jax.runtime.arrays import AnyArray, loop_while, namespace, special
from dre_jax.tuning.trials.selection import spaced_slots

LENGTHS = (0.15, 0.5, 1.5)
"""Length scales of all coordinates, in units of the square root of their number."""
COORDINATE_LENGTHS = (0.07, 0.2, 0.7)
SHARES = (0.5, 0.9, 0.99)
NOISY_SHARES = (0.25, 0.5, 0.75, 0.9, 0.99)
"""Shares of a signal from which the noise of predictions is estimated."""
MAX_TRIALS = 64


def has_signal(
    points: Float[AnyArray, "n P"], values: Float[AnyArray, " n"], where: Bool[AnyArray, " n"]
) -> Bool[AnyArray, ""]:
    """Returns whether values at points of the unit cube are a signal rather than noise alone.

    ``where`` are the values that count. Of more than 64, 64 count, evenly spaced in time.
    """
    xp = namespace(points)
    rows, filled = spaced_slots(where, MAX_TRIALS, min(len(where), MAX_TRIALS))
    points, values, n = points[rows], values[rows], xp.sum(filled, dtype=points.dtype)
    less = xp.sum((values[None, :] < values[:, None]) & filled[None, :], axis=1, dtype=points.dtype)
    equal = xp.sum((values[None, :] == values[:, None]) & filled[None, :], axis=1, dtype=points.dtype)
    scores = special(points).ndtri(xp.where(filled, (less + 0.5 * equal) / n, 0.5))
    evidence = _evidence(points, scores, filled)
    log_noise, n_lengths = evidence.of_noise(), len(evidence.length_scales[0])

    def add_length(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        i, total = carry
        for share in SHARES:
            total = xp.logaddexp(total, evidence.of_signal(i, share))
        return i + 1, total

    def is_open(carry: tuple[Any, Any]) -> Any:
        return (carry[0] < n_lengths) & ~(carry[1] > log_noise)  # the others would add to it

    start = xp.zeros((), np.int32), xp.full((), -xp.inf, points.dtype)
    return loop_while(is_open, add_length, start)[1] > log_noise


def noise_share(points: Float64[np.ndarray, "n P"], values: Float64[np.ndarray, " n"]) -> float:
    """Returns a share of noise in the variance of values at points of the unit cube.

    It is r / (1 + r) of the expected ratio r of noise to signal, beyond the least, at most three quarters; all ratios
    are equally likely before the first value. Of more than 64 trials, 64 count, evenly spaced in time. Values are
    between 0 and 1.
    """
    rows, filled = spaced_slots(np.ones(len(values), bool), MAX_TRIALS, min(len(values), MAX_TRIALS))
    deviation = values[rows].std() if len(rows) else 0.0
    if not deviation:
        return 0.0
    evidence = _evidence(points[rows], (values[rows] - values[rows].mean()) / deviation, filled)
    n_lengths = len(evidence.length_scales[0])
    logs = np.array([[evidence.of_signal(np.int32(i), share) for share in NOISY_SHARES] for i in range(n_lengths)])
    weights, ratios = np.exp(logs - logs.max()), 1.0 / np.array(NOISY_SHARES) - 1.0
    ratio = float(np.sum(weights * ratios) / weights.sum() - ratios.min())
    return ratio / (1.0 + ratio)


class _Evidence(NamedTuple):
    """Log evidence of correlation matrices for scores, in slots of which some are filled."""

    targets: Float[AnyArray, "n 2"]
    """Scores and ones, 0 in empty slots."""
    pairs: Bool[AnyArray, "n n"]
    """Pairs of filled slots."""
    apart: Float[AnyArray, "n n P"]
    """Distances in each coordinate."""
    together: Float[AnyArray, "n n"]
    """Roots of the mean squares of these."""
    n: Float[AnyArray, ""]
    """Number of filled slots."""
    length_scales: tuple[Float[AnyArray, " L"], Int[AnyArray, " L"], Float[AnyArray, " L"]]
    """As `length_scales` returns them."""

    def of_noise(self) -> Float[AnyArray, ""]:
        """Returns the log evidence of noise alone."""
        return self.of(namespace(self.targets).eye(len(self.targets), dtype=self.targets.dtype))

    def of_signal(self, i: Int[AnyArray, ""], share: float) -> Float[AnyArray, ""]:
        """Returns the log evidence of a share of the i-th signal of `length_scales`, with its weight."""
        xp, dtype = namespace(self.targets), self.targets.dtype
        lengths, coordinates, log_weights = self.length_scales
        coordinate = coordinates[i]
        distance = xp.where(coordinate < 0, self.together, self.apart[:, :, xp.maximum(coordinate, 0)])
        correlation = matern52_of_distance(distance / lengths[i])
        matrix = share * correlation + (1.0 - share) * xp.eye(len(self.targets), dtype=dtype)
        return self.of(matrix) + log_weights[i]

    def of(self, correlation: Float[AnyArray, "n n"]) -> Float[AnyArray, ""]:
        """Returns the log evidence of a correlation matrix."""
        xp = namespace(correlation)
        matrix = xp.where(self.pairs, correlation, xp.eye(len(correlation), dtype=correlation.dtype))
        factor: Any = np.linalg.cholesky(matrix) if xp is np else cholesky(matrix)
        whitened: Any = (np.linalg.solve if xp is np else solve_lower)(factor, self.targets)
        squares, ones = xp.sum(whitened**2, axis=0)
        squared_residual = squares - xp.sum(whitened[:, 0] * whitened[:, 1]) ** 2 / ones
        half_log_determinant = xp.sum(xp.log(xp.diagonal(factor))) + 0.5 * xp.log(ones)
        return log_t_density(squared_residual, half_log_determinant, self.n - 1)


def _evidence(points: Float[AnyArray, "n P"], scores: Float[AnyArray, " n"], filled: Bool[AnyArray, " n"]) -> _Evidence:
    xp, dtype = namespace(points), points.dtype
    targets = xp.stack([xp.where(filled, scores, 0.0), filled.astype(dtype)], axis=1)
    apart = xp.abs(points[:, None] - points[None])
    together = xp.sqrt(xp.mean(apart**2, axis=-1))
    lengths, coordinates, log_weights = map(xp.asarray, length_scales(points.shape[1]))
    scales = lengths.astype(dtype), coordinates, log_weights.astype(dtype)
    return _Evidence(targets, filled[:, None] & filled[None, :], apart, together, xp.sum(filled, dtype=dtype), scales)


def length_scales(
    n_parts: int,
) -> tuple[Float64[np.ndarray, " L"], Int32[np.ndarray, " L"], Float64[np.ndarray, " L"]]:
    """Returns length scales, the coordinate of each, -1 for all, and the log weight of each and of one share."""
    lengths = [*LENGTHS, *(length for length in COORDINATE_LENGTHS for _ in range(n_parts))]
    coordinates = [-1] * len(LENGTHS) + list(range(n_parts)) * len(COORDINATE_LENGTHS)
    halves = [len(LENGTHS) if i < 0 else len(COORDINATE_LENGTHS) * n_parts for i in coordinates]
    log_weights = [math.log(0.5 / count / len(SHARES)) for count in halves]
    return np.array(lengths), np.array(coordinates, np.int32), np.array(log_weights)
