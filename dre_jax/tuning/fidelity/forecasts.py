"""Final values of trainings, forecast from their values at lower budgets."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.tuning.curves.partial_curves import forecast_last_values
from dre_jax.tuning.curves.priors import wandering_prior
from dre_jax.tuning.curves.warp import fit_warp
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.trainings import Training
from dre_jax.tuning.past.curves import Curve, as_curve
from dre_jax.tuning.trials.objectives import Objectives
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import VALUE, Trial

_STATIC = 0.01
"""Change of values from budget to budget, in standard deviations of the trainings, up to which they count as final."""


class FinalValues(NamedTuple):
    """Forecasts of the final values of n trainings in an objective."""

    values: np.ndarray
    """f64[n]"""
    errors: np.ndarray
    """f64[n], standard errors; 0 of whole curves."""


@with_default_float_errors
def forecast_trials(trainings: Sequence[Training], fidelity: Fidelity, objectives: Objectives) -> list[Trial] | None:
    """Returns the trials of trainings that have values, with forecasts of the final ones, as trials that were stopped.

    Each is the latest trial with a value. None if the latest values of the trainings are equal in all objectives.
    """
    finals, is_informed = dict[str, FinalValues](), False
    for objective in objectives:
        of_objective = [training.with_objective(objective.name) for training in trainings]
        curves = [curve_of(training, objective.sign) for training in of_objective]
        latest = np.array([curve[max(curve)] for curve in curves])
        is_informed = is_informed or len(np.unique(clip_responses(latest))) > 1
        values, errors = forecast_final_values(curves, fidelity)
        finals[objective.name] = FinalValues(objective.sign * values, errors)
    if not is_informed:
        return None
    latest_trials = [trial for training in trainings if (trial := training.latest_valued) is not None]
    return [_stopped(trial, finals, i) for i, trial in enumerate(latest_trials)]


def _stopped(trial: Trial, finals: Mapping[str, FinalValues], i: int) -> Trial:
    """Returns the latest trial of training i with the forecasts of its final values by objective."""
    values = {name: float(final.values[i]) for name, final in finals.items()}
    stderrs = {name: float(final.errors[i]) for name, final in finals.items()}
    if len(finals) > 1:
        return trial.with_fields(state="stopped", values=values, stderrs=stderrs)
    return trial.with_fields(state="stopped", value=values[VALUE], stderr=stderrs[VALUE])


def forecast_final_values(curves: Sequence[Curve], fidelity: Fidelity) -> FinalValues:
    """Returns the forecasts of the last responses of curves by budget.

    Responses that do not change with the budget, such as the size of a model, are known, and so are equal ones.
    """
    latest = np.array([curve[max(curve)] for curve in curves])
    clipped = clip_responses(latest)
    if len(np.unique(clipped)) < 2 or _is_static(curves, float(np.std(clipped))):
        return FinalValues(latest, np.zeros(len(latest)))
    responses, lengths = rung_responses(curves, fidelity)
    warp = fit_warp(clipped[:, None])
    finite = np.nan_to_num(responses, nan=clipped.min(), posinf=clipped.max(), neginf=clipped.min())
    scores = warp.forward(np.clip(finite, clipped.min(), clipped.max()))
    prior = wandering_prior(np.array(fidelity.budgets) / fidelity.highest)
    mean, deviation = forecast_last_values(prior, scores, lengths)
    low, middle, high = (warp.backward(mean + z * deviation) for z in (-1.0, 0.0, 1.0))
    return FinalValues(middle, (high - low) / 2)


def _is_static(curves: Sequence[Curve], deviation: float) -> bool:
    """Returns whether the responses of trainings stay as they are from budget to budget, if any has several."""
    ends = np.array([(curve[min(curve)], curve[max(curve)]) for curve in curves if len(curve) > 1]).reshape(-1, 2)
    if not len(ends) or not np.isfinite(ends).all():
        return False
    return bool(np.abs(ends[:, 1] - ends[:, 0]).max() <= _STATIC * deviation)


def curve_of(training: Training, sign: float) -> Curve:
    """Returns the responses of a training with a single value: its values, and what it reported at other budgets."""
    reports = {step: value for trial in training.trials for step, value in trial.reports.items()}
    return as_curve({**reports, **training.values}, sign)


def all_rung_responses(
    trainings: Sequence[Training], fidelity: Fidelity, objectives: Objectives
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the responses f64[n, G, M] of trainings at the budgets in M objectives, and how many are known, i[n]."""
    parts = [
        rung_responses(
            [curve_of(training.with_objective(objective.name), objective.sign) for training in trainings], fidelity
        )
        for objective in objectives
    ]
    return np.stack([responses for responses, _ in parts], axis=-1), parts[0][1]


def rung_responses(curves: Sequence[Curve], fidelity: Fidelity) -> tuple[np.ndarray, np.ndarray]:
    """Returns the responses f64[n, G] of curves at the budgets of a fidelity, and how many are known, i[n].

    Between two reports a curve is linear. A value of a budget below the lowest one counts as if it was of that one.
    """
    budgets = np.array(fidelity.budgets, float)
    responses = [np.interp(budgets, list(curve), list(curve.values())) for curve in curves]
    lengths = [max(int(np.searchsorted(budgets, max(curve), side="right")), 1) for curve in curves]
    return np.array(responses).reshape(len(curves), len(budgets)), np.array(lengths, int)
