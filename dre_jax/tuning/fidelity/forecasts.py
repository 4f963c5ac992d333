"""Final values of trainings, forecast from their values at lower budgets."""

import math
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
from dre_jax.tuning.trials.objectives import Objective, Objectives
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import VALUE, Trial

_STATIC = 0.01
"""Change of values with the budget, in standard deviations of the trainings, up to which they count as final."""


class FinalValues(NamedTuple):
    """Forecasts of the final responses of n trainings in an objective."""

    values: np.ndarray
    """f64[n]"""
    errors: np.ndarray
    """f64[n], standard errors; 0 of whole curves."""


@with_default_float_errors
def forecast_trials(trainings: Sequence[Training], fidelity: Fidelity, objectives: Objectives) -> list[Trial] | None:
    """Returns the trials of trainings that have values, with forecasts of the final ones, as trials that were stopped.

    Each is the latest trial with a value. The values in an objective are forecast from those in this one; if the latest
    ones are equal, they count as final. None if they are equal in all objectives.
    """
    finals = {
        objective: forecast_final_values(curves_of(trainings, objective), fidelity) if trainings else None
        for objective in objectives
    }
    if all(final is None for final in finals.values()):
        return None
    latest = [trial for training in trainings if (trial := training.latest_valued) is not None]
    return [_stopped(trial, finals, i) for i, trial in enumerate(latest)]


def _stopped(trial: Trial, finals: Mapping[Objective, FinalValues | None], i: int) -> Trial:
    """Returns the latest trial of training i with the forecasts of its final values by objective."""
    values, stderrs = dict[str, float](), dict[str, float]()
    for objective, final in finals.items():
        name = objective.name
        values[name], stderrs[name] = trial.values.get(name, math.nan), 0.0
        if final is not None:
            values[name], stderrs[name] = objective.sign * float(final.values[i]), float(final.errors[i])
    if len(finals) > 1:
        return trial.with_fields(state="stopped", values=values, stderrs=stderrs)
    return trial.with_fields(state="stopped", value=values[VALUE], stderr=stderrs[VALUE])


def forecast_final_values(curves: Sequence[Curve], fidelity: Fidelity) -> FinalValues | None:
    """Returns the forecasts of the last responses of curves by budget; None if the latest responses are equal.

    Responses that do not change with the budget, such as the size of a model, are known.
    """
    responses, lengths = rung_responses(curves, fidelity)
    latest = responses[np.arange(len(responses)), lengths - 1]
    clipped = clip_responses(latest)
    if len(np.unique(clipped)) < 2:
        return None
    if _is_static(curves, fidelity, float(np.std(clipped))):
        return FinalValues(latest, np.zeros(len(latest)))
    warp = fit_warp(clipped[:, None])
    finite = np.nan_to_num(responses, nan=clipped.min(), posinf=clipped.max(), neginf=clipped.min())
    scores = warp.forward(np.clip(finite, clipped.min(), clipped.max()))
    prior = wandering_prior(np.array(fidelity.budgets) / fidelity.highest)
    mean, deviation = forecast_last_values(prior, scores, lengths)
    low, middle, high = (warp.backward(mean + z * deviation) for z in (-1.0, 0.0, 1.0))
    return FinalValues(middle, (high - low) / 2)


def _is_static(curves: Sequence[Curve], fidelity: Fidelity, deviation: float) -> bool:
    """Returns whether no response has changed with the budget, and one has stayed until the highest budget."""
    changing = [curve for curve in curves if len(curve) > 1]
    if not any(max(curve) >= fidelity.highest for curve in changing):
        return False
    ends = np.array([(curve[min(curve)], curve[max(curve)]) for curve in changing])
    return bool(np.isfinite(ends).all() and np.abs(ends[:, 1] - ends[:, 0]).max() <= _STATIC * deviation)


def curves_of(trainings: Sequence[Training], objective: Objective) -> list[Curve]:
    """Returns the responses of trainings in an objective by budget."""
    return [_curve_of(training.with_objective(objective.name), objective.sign) for training in trainings]


def _curve_of(training: Training, sign: float) -> Curve:
    """Returns the responses of a training with a single value: its values, and what it reported at other budgets."""
    reports = {step: value for trial in training.trials for step, value in trial.reports.items()}
    return as_curve({**reports, **training.values}, sign)


def all_rung_responses(
    trainings: Sequence[Training], fidelity: Fidelity, objectives: Objectives
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the responses f64[n, G, M] of trainings at the budgets in M objectives, and how many are known, i[n]."""
    parts = [rung_responses(curves_of(trainings, objective), fidelity) for objective in objectives]
    return np.stack([responses for responses, _ in parts], axis=-1), parts[0][1]


def rung_responses(curves: Sequence[Curve], fidelity: Fidelity) -> tuple[np.ndarray, np.ndarray]:
    """Returns the responses f64[n, G] of curves at the budgets of a fidelity, and how many are known, i[n].

    Between two reports a curve is linear. A value of a budget below the lowest one counts as if it was of that one.
    """
    budgets = np.array(fidelity.budgets, float)
    responses = [np.interp(budgets, list(curve), list(curve.values())) for curve in curves]
    lengths = [max(int(np.searchsorted(budgets, max(curve), side="right")), 1) for curve in curves]
    return np.array(responses).reshape(len(curves), len(budgets)), np.array(lengths, int)
