"""Final values of trainings, forecast from their values at lower budgets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.tuning.curves.partial_curves import LastValues, forecast_last_values
from dre_jax.tuning.curves.priors import wandering_prior
from dre_jax.tuning.curves.warp import Warp, fit_warp
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.trainings import Training
from dre_jax.tuning.past.curves import Curve, as_curve
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import Trial


class FinalForecasts(NamedTuple):
    """Posterior of the final values of n trainings, by their curves."""

    scores: LastValues
    """On the scale of ``warp``."""
    warp: Warp
    """Of the latest values of the trainings."""
    sign: float
    """-1 if values are minimised."""

    def observation(self, i: int, trial: Trial) -> Trial:
        """Returns a trial of training i with the forecast of its final value, as that of a trial that was stopped."""
        mean, deviation = (part[i] for part in self.scores)
        low, middle, high = self.warp.backward(mean + deviation * np.array([-1.0, 0.0, 1.0]))
        return trial.with_fields(state="stopped", value=self.sign * float(middle), stderr=float(high - low) / 2)


def forecast_final_values(trainings: Sequence[Training], fidelity: Fidelity, sign: float) -> FinalForecasts | None:
    """Returns the forecasts of trainings with values, ``sign`` times which are higher for better ones.

    None if the latest values of the trainings are equal.
    """
    if not trainings:
        return None
    responses, lengths = rung_responses(trainings, fidelity, sign)
    latest = clip_responses(responses[np.arange(len(responses)), lengths - 1])
    if len(np.unique(latest)) < 2:
        return None
    warp = fit_warp(latest[:, None])
    finite = np.nan_to_num(responses, nan=latest.min(), posinf=latest.max(), neginf=latest.min())
    scores = warp.forward(np.clip(finite, latest.min(), latest.max()))
    prior = wandering_prior(np.array(fidelity.budgets) / fidelity.highest)
    return FinalForecasts(forecast_last_values(prior, scores, lengths), warp, sign)


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
