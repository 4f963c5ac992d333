"""The scale on which values are predicted: it increases with the responses, and has an inverse for all of them.

The search clips responses that are far below the others (`dre_jax.tuning.trials.responses`). A prediction must not: it
is a statement about the values as they are. Here, a logarithm compresses responses beyond the same bound, and a
logarithm of it those far beyond. One diverged trial therefore leaves the others room, and can still be restored.

Responses over orders of magnitude need more: on their own scale, no process has the same variation near the best as
far from it. The distances d from the best response may therefore become c log(1 + d / c). The evidence of Gaussian
processes chooses between that and the distances themselves, and the unit c (Box and Cox 1964), as in
`dre_jax.gp.response_scale`. With past tasks, which have a scale of their own, the distances stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dre_jax.gp.kernels import matern52_of_distance
from dre_jax.gp.student import log_t_density
from dre_jax.tuning.trials.responses import REACH

Floats = npt.NDArray[np.float64]

_MAX = 1e300
"""Larger responses count as infinite."""
_QUANTILES = (0.5, 0.2, 0.05, 0.0)
"""Quantiles of the distances from the best response that are units of the logarithm."""
_ROUNDING = 1e-9
_LOGS = 3.0
"""Value of the logarithm beyond the bound above which it is compressed again."""
_MIN_UNIT = 1e-200
"""Minimum unit of the logarithm, as a share of the largest distance."""
_LINEAR_LOG_ODDS = 2.0
_LENGTHSCALES = (0.1, 0.25, 0.6)
"""Length scales of the processes that choose, in units of the root of the number of columns."""
_NOISE_VAR = 1e-2
_DEGREES_OF_FREEDOM = 5.0


@dataclass(frozen=True)
class PredictionScale:
    """An increasing function of responses."""

    best: float
    """The best finite response."""
    unit: float
    """c of the logarithm; infinite for none."""
    bound: float
    """The distance from the best, after the logarithm, beyond which distances are compressed again."""
    tail_unit: float
    """The unit of that compression."""
    infinity: tuple[float, float]
    """What infinite responses become, the lower and the higher."""
    limits: tuple[float, float]
    """Bounds of finite responses on the scale; infinite where no response is infinite."""

    def apply(self, responses: Floats) -> Floats:
        """Returns finite numbers f64[...] on the scale."""
        distance = self._log(responses)
        log = np.log1p(self._excess(distance))
        tail = self.bound + self.tail_unit * np.where(log > _LOGS, _LOGS * (1.0 + np.log(_at_least(log) / _LOGS)), log)
        scaled = -np.where(distance > self.bound, tail, distance)
        scaled = np.where(responses > _MAX, self.infinity[1], scaled)
        return np.where(responses < -_MAX, self.infinity[0], scaled)

    def slope(self, responses: Floats) -> Floats:
        """Returns the derivative f64[...] of `apply` at finite responses, to convert small errors."""
        excess = self._excess(self._log(responses))
        first = 1.0 + np.maximum(self._distance(responses), 0.0) / self.unit
        return 1.0 / (first * (1.0 + excess) * _at_least(np.log1p(excess)) / _LOGS)

    def invert(self, scaled: Floats) -> Floats:
        """Returns responses f64[...] of numbers on the scale, infinite ones beyond `limits`."""
        distance = -np.clip(scaled, -1e308, 1e308)
        with np.errstate(over="ignore"):
            tail = self._excess(distance)
            log = np.where(tail > _LOGS, _LOGS * np.exp(_at_least(tail) / _LOGS - 1.0), tail)
            beyond = np.expm1(log) * self.tail_unit
            distance = np.where(distance > self.bound, self.bound + beyond, distance)
            if np.isfinite(self.unit):
                far = np.expm1(np.maximum(distance, 0.0) / self.unit) * self.unit
                distance = np.where(distance > 0.0, far, distance)
            response = self.best - distance
        response = np.where(np.abs(response) > _MAX * (1.0 + _ROUNDING), np.copysign(np.inf, response), response)
        low, high = self.limits
        return np.where(scaled < low, -np.inf, np.where(scaled > high, np.inf, response))

    def _distance(self, responses: Floats) -> Floats:
        return self.best - np.clip(responses, -_MAX, _MAX)

    def _excess(self, distance: Floats) -> Floats:
        """Returns how far distances on the logarithmic scale are beyond the bound, in units of the tail."""
        return np.minimum(np.maximum(distance - self.bound, 0.0), _MAX * min(self.tail_unit, 1.0)) / self.tail_unit

    def _log(self, responses: Floats) -> Floats:
        """Returns distances from the best after the logarithm."""
        distance = self._distance(responses)
        if np.isinf(self.unit):
            return distance
        return np.where(distance > 0.0, self.unit * np.log1p(np.maximum(distance, 0.0) / self.unit), distance)


def _at_least(log: Floats) -> Floats:
    return np.maximum(log, _LOGS)


def choose_scale(responses: Floats, columns: Floats, *, may_compress: bool) -> PredictionScale:
    """Returns the scale of responses f64[n] of configurations f64[n, D].

    ``may_compress`` is whether all responses may be on a logarithmic scale, as without past tasks.

    Example:
      >>> scale = choose_scale(np.array([1.0, 2.0, 3.0, -1e12, -np.inf]), np.zeros((5, 1)), may_compress=False)
      >>> scale.apply(np.array([1.0, 2.0, 3.0, -1e12, -np.inf])).round(1).tolist()
      [-2.0, -1.0, -0.0, -23.4, -25.8]
      >>> scale.invert(np.array([-2.0, 0.0, 4.0, -25.8])).tolist()
      [1.0, 3.0, 7.0, -inf]
    """
    finite = np.abs(responses) <= _MAX
    linear = _scale_of(responses, np.inf)
    distances = np.sort(linear.best - responses[finite])
    positive = distances[distances > 0.0]
    if not may_compress or len(positive) < 3:
        return linear
    units = np.maximum(np.quantile(positive, _QUANTILES), _MIN_UNIT * positive[-1])
    scales = [linear, *(_scale_of(responses, float(unit)) for unit in units)]
    scaled = np.stack([scale.apply(responses[finite]) for scale in scales], axis=1)
    log_slopes = np.stack([np.log(scale.slope(responses[finite])) for scale in scales], axis=1)
    spread = np.ptp(scaled, axis=0)
    unit_scaled = (scaled - scaled.min(axis=0)) / spread
    deviation = unit_scaled.std(axis=0)
    evidence = _log_evidence((unit_scaled - unit_scaled.mean(axis=0)) / deviation, columns[finite])
    evidence += np.sum(log_slopes - np.log(deviation) - np.log(spread), axis=0)
    evidence[0] += _LINEAR_LOG_ODDS
    return scales[int(np.argmax(evidence))]


def _scale_of(responses: Floats, unit: float) -> PredictionScale:
    """Returns the scale of a unit of the logarithm."""
    finite = responses[np.abs(responses) <= _MAX]
    if not len(finite):
        return PredictionScale(0.0, np.inf, np.inf, 1.0, (-1.0, 1.0), (0.0, 0.0))
    nowhere = -np.inf, np.inf
    uncompressed = PredictionScale(float(finite.max()), unit, np.inf, 1.0, nowhere, nowhere)
    middle = -float(np.median(uncompressed.apply(finite)))
    tail = (REACH + 1.0) * middle, middle if middle > 0.0 else 1.0
    scale = PredictionScale(uncompressed.best, unit, tail[0] if middle > 0.0 else np.inf, tail[1], nowhere, nowhere)
    scaled = scale.apply(finite)
    step = 0.1 * np.ptp(scaled) or 1.0
    low, high = scaled.min(), scaled.max()
    is_low, is_high = responses < -_MAX, responses > _MAX
    limits = low - 0.5 * step if is_low.any() else -np.inf, high + 0.5 * step if is_high.any() else np.inf
    return PredictionScale(scale.best, unit, scale.bound, scale.tail_unit, (low - step, high + step), limits)


def _log_evidence(y: Floats, columns: Floats) -> Floats:
    """Returns the logarithms f64[S] of the mean density of standardised responses f64[n, S] under the processes."""
    return np.logaddexp.reduce([_log_density(y, factor) for factor in _factors(columns)])


def _log_density(y: Floats, factor: Floats) -> Floats:
    """Returns log-densities f64[S], up to a constant, of a Student-t process with such a factor f64[n, n]."""
    squares = np.sum(np.linalg.solve(factor, y) ** 2, axis=0)
    half_log_determinant = np.sum(np.log(np.diagonal(factor)))
    density: Floats = log_t_density(squares, half_log_determinant, len(y), _DEGREES_OF_FREEDOM)
    return density


def _factors(columns: Floats) -> Iterator[Floats]:
    """Yields the Cholesky factor f64[n, n] of the covariance of each process, which has an unknown mean."""
    distance = np.sqrt(np.sum((columns[:, None] - columns[None]) ** 2, axis=2) / columns.shape[1])
    for length in _LENGTHSCALES:
        yield np.linalg.cholesky(1.0 + matern52_of_distance(distance / length) + _NOISE_VAR * np.eye(len(columns)))
