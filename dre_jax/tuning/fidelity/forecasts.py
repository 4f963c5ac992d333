"""Final values of trainings, forecast from their values at lower budgets."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dre_jax.tuning.curves.gaussian_processes import CurvePrior
from dre_jax.tuning.curves.partial_curves import Forecasts, PartialCurves
from dre_jax.tuning.curves.priors import learn_priors, wandering_prior
from dre_jax.tuning.curves.steps import past_responses
from dre_jax.tuning.curves.warp import Warp, fit_warp
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.trainings import Training
from dre_jax.tuning.past.curves import Curve, PastCurves, as_curve
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import Trial


class FinalForecasts:
    """Posterior of the final values of trainings, by the curves of this study and of past ones.

    Scores are responses on the scale of `fit_warp`, of the latest values of all trainings.
    """

    def __init__(self, trainings: Sequence[Training], fidelity: Fidelity, sign: float, past: PastCurves) -> None:
        """Learns from trainings, of which at least two have different values; ``sign`` is -1 if they are minimised."""
        self._sign = sign
        shares = np.array(fidelity.budgets) / fidelity.highest
        responses, self.lengths = rung_responses(trainings, fidelity, sign)
        latest = clip_responses(responses[np.arange(len(responses)), self.lengths - 1])
        self._warp: Warp = fit_warp(latest[:, None])
        finite = np.nan_to_num(responses, nan=latest.min(), posinf=latest.max(), neginf=latest.min())
        self.scores: np.ndarray = self._warp.forward(np.clip(finite, latest.min(), latest.max()))
        """f64[n, G] at the budgets of the fidelity, of which the first `lengths` i[n] are known."""
        curves = PartialCurves((wandering_prior(shares), *_past_priors(past, tuple(shares))), self.scores, self.lengths)
        self.forecasts: Forecasts = curves.forecast(self.scores, self.lengths)
        """Of the final scores."""

    def observation(self, i: int, trial: Trial) -> Trial:
        """Returns a trial of training i with the forecast of its final value, as that of a trial that was stopped."""
        deviation = np.sqrt(self.forecasts.variances[i, self.lengths[i]])
        low, middle, high = self._warp.backward(self.forecasts.mean[i] + deviation * np.array([-1.0, 0.0, 1.0]))
        return trial.with_fields(state="stopped", value=self._sign * float(middle), stderr=float(high - low) / 2)


def has_scale(trainings: Sequence[Training]) -> bool:
    """Returns whether the latest values of trainings differ."""
    return len({training.values[training.reached] for training in trainings}) > 1


def _curve_of(training: Training, sign: float) -> Curve:
    """Returns the responses of a training by budget: its values, and what it reported at other budgets."""
    reports = {step: value for trial in training.trials for step, value in trial.reports.items()}
    return as_curve({**reports, **training.values}, sign)


def rung_responses(trainings: Sequence[Training], fidelity: Fidelity, sign: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns the responses f64[n, G] of trainings at the budgets of a fidelity, and how many are known, i[n].

    Between two reports a curve is linear. A value of a budget below the lowest one counts as if it was of that one.
    """
    budgets = np.array(fidelity.budgets, float)
    curves = [_curve_of(training, sign) for training in trainings]
    responses = [np.interp(budgets, list(curve), list(curve.values())) for curve in curves]
    lengths = [max(int(np.searchsorted(budgets, max(curve), side="right")), 1) for curve in curves]
    return np.array(responses).reshape(len(curves), len(budgets)), np.array(lengths, int)


@lru_cache(maxsize=8)
def _past_priors(past: PastCurves, shares: tuple[float, ...]) -> tuple[CurvePrior, ...]:
    """Returns priors learned from the curves of past studies, at shares of their last steps."""
    steps = np.array(shares)
    tasks = [past_responses(curves, steps) for curves in past.tasks.values()]
    scores = [fit_warp(curves).forward(curves) for curves in tasks if len(np.unique(curves[:, -1])) > 1]
    return learn_priors(wandering_prior(steps), scores) if scores else ()
