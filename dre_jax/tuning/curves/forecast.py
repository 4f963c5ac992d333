"""Forecasts of final values from the beginnings of learning curves, and the rule that stops trials.

The curves of a study are draws of one Gaussian process (`gaussian_processes`), whose prior is generic or learned from
past studies (`priors`). The finished curves of the study weigh these priors by how well each predicts the last value of
a curve that is left out, so that misleading past studies lose their weight. A trial is stopped if the probability that
it becomes the best is below a bound times the gain of stopping it. The gain falls as fewer steps remain
(`stopping_gains`). Each beginning of a curve gives a probability that the curve ends above the next lower one. The
surprise of the curve is -log of the least ratio of that probability to the gain. A trial that would have become the
best is stopped only if the bound is above exp(-surprise). The bound is set so that this happens to a share `error` of
the best trials. Surprises have a gamma distribution, whose rate has a conjugate prior, which past studies inform.

With past studies of the same kind, a trial is also stopped if more trials are ahead of it than ever were of the best
trials of past studies (`ranks`), with the same error. Ranks do not count if the finished curves contradict past
studies, or if the trial becomes the best with four times the probability of any trial. Ranks do not depend on units and
scales, which the process may fit badly.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dre_jax.tuning.curves.gaussian_processes import condition, log_density, predict_last
from dre_jax.tuning.curves.priors import (
    PastPriors,
    generic_prior,
    next_lower,
    past_priors,
    stopping_gains,
    surprises,
    top_weights,
    upper_tail,
)
from dre_jax.tuning.curves.ranks import lags
from dre_jax.tuning.curves.steps import last_step, relative_curve, step_grid
from dre_jax.tuning.curves.warp import fit_warp
from dre_jax.tuning.past.curves import Curve, PastCurves

_MAX_CURVES = 100
_MIN_CURVES, _MIN_CURVES_WITH_PAST = 6, 3
_SURPRISE_COUNT, _SURPRISE, _SHAPE = 5.0, 5.0, 2.0
_TRIALS = 15
"""Number of trials after which the bound falls with its square: the best trials of long studies are rarer."""
_PAST_COUNT, _GENERIC_LOSS = 7.5, 0.5
"""Number of surprises that past studies are worth, and the share of its worth that the generic prior then loses."""
_RISE_COUNT, _RISE, _RISE_SHAPE = 5.0, 0.15, 4.0
"""Number and mean of the rises of ranks that the prior is worth, and the shape of their gamma distribution."""
_LEAST_WEIGHT = 0.1
"""Weight of the past below which ranks count less."""
_CHANCE, _MARGIN = 4.0, 1
"""Multiple of any trial's probability to be the best below which a lagging trial stops; extra curves allowed ahead."""


class Forecast(NamedTuple):
    """The prediction of a curve's last value from its beginning."""

    response: float
    """Posterior mean."""
    stderr: float
    """Posterior standard deviation."""
    probability_of_best: float
    """Probability that the last value is above that of every finished curve."""
    bound: float
    """Probability below which the trial is to be stopped."""

    @property
    def stops(self) -> bool:
        """Whether the trial is to be stopped."""
        return self.probability_of_best < self.bound


class CurveModel:
    """Posterior of the curves of a study."""

    def __init__(self, curves: Sequence[Curve], past: PastCurves | None = None, *, error: float = 0.05) -> None:
        """Learns from finished curves. Forecasts need at least 6 of them, or 3 with past studies.

        ``error`` is the share of best trials that may be stopped.
        """
        past = past or PastCurves()
        curves = [curve for curve in curves if len(curve) > 1][-_MAX_CURVES:]
        self.is_ready = False
        if len(curves) < (_MIN_CURVES_WITH_PAST if past else _MIN_CURVES):
            return
        self._horizon = last_step(curves)
        curves = [relative_curve(curve, self._horizon) for curve in curves]
        self._steps = step_grid(curves)
        responses, self._floor = _responses(curves, self._steps)
        if len(self._steps) > 1 and np.unique(responses[:, -1]).size > 1:
            self.is_ready = True
            self._fit(responses, _past_priors(past, tuple(self._steps)), error)

    def _fit(self, responses: np.ndarray, past: PastPriors, error: float) -> None:
        self._warp = fit_warp(responses)
        curves = self._warp.forward(responses)
        last = curves[:, -1:]
        self._best, self._gains = last.max(), stopping_gains(self._steps)
        priors = (generic_prior(self._steps), *past.priors)
        leave_one_out_weights = 1.0 - np.eye(len(curves))
        left_out = [predict_last(condition(prior, curves, leave_one_out_weights), curves) for prior in priors]
        evidence = np.array([log_density(predictions, last).mean(-1).sum() for predictions in left_out])
        self._weights = np.exp(evidence - evidence.max()) / np.exp(evidence - evidence.max()).sum()
        self._posteriors = [condition(prior, curves, np.ones(len(curves))) for prior in priors]
        bars, weights = next_lower(last[:, 0])[:, None], top_weights(last[:, 0])
        tails = np.tensordot(self._weights, [upper_tail(predictions, bars) for predictions in left_out], 1)
        past_weight = self._weights[1:].sum() if past.surprises.size else 0.0
        generic_count, past_count = _SURPRISE_COUNT * (1.0 - _GENERIC_LOSS * past_weight), _PAST_COUNT * past_weight
        count = generic_count + past_count + weights.sum()
        total = generic_count * _SURPRISE + weights @ surprises(tails, self._gains)
        total += past_count * past.surprises.mean() if past_count else 0.0
        self.surprise_posterior = count, total
        self.bound = math.exp(-_quantile(count, total, _SHAPE, error))
        rises = [_quantile(_RISE_COUNT + n, _RISE_COUNT * _RISE + total, _RISE_SHAPE, error) for n, total in past.rises]
        rise = min(max(rises, default=1.0), 1.0)
        self.share_ahead = 1.0 - min(1.0, float(self._weights[1:].sum()) / _LEAST_WEIGHT) * (1.0 - rise)

    def forecast(self, curve: Curve, n_trials: int = 1, ended_curves: Sequence[Curve] = ()) -> Forecast | None:
        """Returns the forecast of a running trial; None before the first step of the grid, or from the horizon on.

        The study has ``n_trials`` trials so far. ``ended_curves`` are the curves of all trials that ended, in order;
        stopped trials are among them.
        """
        if not self.is_ready or not curve:
            return None
        curve = relative_curve(curve, self._horizon)
        n_reached = int(np.searchsorted(self._steps, max(curve), side="right"))
        if not 0 < n_reached < len(self._steps):
            return None
        values = self._warp.forward(_responses([curve], self._steps, self._floor)[0][0])
        predictions = [predict_last(posterior, values) for posterior in self._posteriors]
        probability = self._weights @ [upper_tail(prediction, self._best)[n_reached - 1] for prediction in predictions]
        means, scales, degrees = np.array(
            [[part[n_reached - 1] for part in prediction] for prediction in predictions]
        ).T
        mean = self._weights @ means
        deviation = math.sqrt(self._weights @ (scales**2 * degrees / (degrees - 2) + (means - mean) ** 2))
        low, middle, high = self._warp.backward(mean + deviation * np.array([-1.0, 0.0, 1.0]))
        bound = self.bound * self._gains[n_reached - 1] * min(1.0, (_TRIALS / n_trials) ** 2)
        chance = _CHANCE / n_trials
        if bound <= probability < chance:
            relative_curves = [relative_curve(other, self._horizon) for other in ended_curves]
            bound = chance if lags(curve, relative_curves, self.share_ahead, _MARGIN) else bound
        return Forecast(float(middle), float(high - low) / 2, float(probability), float(bound))


def _quantile(count: float, total: float, shape: float, error: float) -> float:
    """Returns the value that a gamma variable exceeds with probability `error`, given the sum of ``count`` others."""
    from scipy.special import betaincinv  # importing it takes a tenth of a second

    fraction = betaincinv(shape, shape * count, 1.0 - error)  # of the sum of all variables and a new one
    return float(total * fraction / (1.0 - fraction))


def _responses(curves: Sequence[Curve], steps: np.ndarray, floor: float | None = None) -> tuple[np.ndarray, float]:
    """Returns f64[n, G], curves at steps, and the worst finite response, which replaces NaN and infinite ones.

    Curves are linear between reports, and constant before the first and after the last.
    """
    values = [np.fromiter(curve.values(), float) for curve in curves]
    finite = np.concatenate([value[np.isfinite(value)] for value in values])
    floor = (float(finite.min()) if len(finite) else 0.0) if floor is None else floor
    clean = [np.where(np.isfinite(value), value, floor) for value in values]
    return np.array(
        [np.interp(steps, list(curve), clean_curve) for curve, clean_curve in zip(curves, clean, strict=True)]
    ), floor


@lru_cache(maxsize=8)
def _past_priors(past: PastCurves, steps: tuple[float, ...]) -> PastPriors:
    """Returns priors of curves, learned from past studies, at steps relative to the last one."""
    grid = np.array(steps)
    tasks = [_past_responses(curves, grid) for curves in past.tasks.values()]
    priors = past_priors(grid, [curves for curves in tasks if np.unique(curves[:, -1]).size > 1])
    return priors if past.same_kind else priors._replace(rises=priors.rises[:0])


def _past_responses(curves: Sequence[Curve], steps: np.ndarray) -> np.ndarray:
    horizon = last_step(curves)
    return _responses([relative_curve(curve, horizon) for curve in curves], steps)[0]
