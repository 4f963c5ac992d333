"""Priors of learning curves: a generic one, and those learned from past studies."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dre_jax.tuning.curves.gaussian_processes import CurvePrior, Predictions, condition, predict_last
from dre_jax.tuning.curves.ranks import rank_rises
from dre_jax.tuning.curves.warp import fit_warp

COUNTS = (8.0, 64.0)
"""Numbers of curves that past studies may be worth; the study's own curves choose."""
_GENERIC_COUNT = 4.0
_TASK_WEIGHT = 30.0
"""Number of curves that a past task is worth, at most."""
_GAIN_POWER = 5.0
_DECAY, _NOISE, _ASYMPTOTE, _TRANSIENT = 0.3, 0.02, 0.6, 1.2
_START, _WANDERING, _WANDERING_MEAN_COUNT = 1.5, 2.5, 3.0


class PastPriors(NamedTuple):
    """Priors learned from past studies, at the steps of a study."""

    priors: tuple[CurvePrior, ...]
    """One for each of `COUNTS`."""
    surprises: np.ndarray
    """f64[S]: mean surprise (see `surprises`) of the best curves of a study, predicted from the other studies."""
    rises: np.ndarray
    """f64[T, 2]: weight of the curves of each study, and weighted sum of the rises of their ranks (`rank_rises`)."""


def generic_prior(steps: np.ndarray) -> CurvePrior:
    """Returns the prior at steps f64[G] without past studies: curves that approach asymptotes.

    The covariance of steps t and t' is that of the asymptotes, of the decays, b / (b + t + t'), and of noise (the
    exponential decay kernel of Swersky, Snoek and Adams 2014, with t relative to the last step).
    """
    t = steps / steps[-1]
    decay = _DECAY / (_DECAY + t[:, None] + t)
    covariance = _ASYMPTOTE + _TRANSIENT * decay + _NOISE * np.eye(len(t))
    rise = _DECAY / (_DECAY + t)
    mean = (rise[-1] - rise) / (1.0 - rise[-1])
    return CurvePrior(mean, covariance, 1.0, _GENERIC_COUNT)


def wandering_prior(steps: np.ndarray) -> CurvePrior:
    """Returns the prior at steps f64[G] of curves that cross: increments over log(step) are independent.

    The values of random configurations at the first step have the variance 1.5, and wander from there (Brownian motion)
    by a variance of 2.5 until the last step. Forecasts from few curves of very different trainings then have about the
    errors that they state.
    """
    logs = np.log(steps / steps[0])
    shares = logs / logs[-1] if logs[-1] > 0.0 else logs
    wandering = _START + _WANDERING * np.minimum(shares[:, None], shares)
    covariance = wandering + _NOISE * np.eye(len(steps))
    return CurvePrior(shares - shares[-1], covariance, _WANDERING_MEAN_COUNT, _GENERIC_COUNT)


def past_priors(steps: np.ndarray, tasks: Sequence[np.ndarray]) -> PastPriors:
    """Returns priors learned from the responses f64[n, G] of past studies, each with at least two different curves."""
    warped_curves = [fit_warp(curves).forward(curves) for curves in tasks]
    if not warped_curves:
        return PastPriors((), np.zeros(0), np.zeros((0, 2)))
    held_out: list[float] = []
    for i, curves in enumerate(warped_curves[: len(warped_curves) * (len(warped_curves) > 1)]):
        priors = _learn(steps, warped_curves[:i] + warped_curves[i + 1 :])
        bars, weights = next_lower(curves[:, -1])[:, None], top_weights(curves[:, -1])
        tails = np.mean([upper_tail(predict_last(prior, curves), bars) for prior in priors], 0)
        held_out.append(np.average(surprises(tails, stopping_gains(steps)), weights=weights))
    tops = [top_weights(curves[:, -1]) for curves in tasks]
    rises = [(top.sum(), top @ rank_rises(curves)) for top, curves in zip(tops, tasks, strict=True)]
    return PastPriors(_learn(steps, warped_curves), np.array(held_out), np.array(rises))


def _learn(steps: np.ndarray, tasks: Sequence[np.ndarray]) -> tuple[CurvePrior, ...]:
    weights = np.concatenate([np.full(len(task), min(1.0, _TASK_WEIGHT / len(task))) for task in tasks])
    prior = condition(generic_prior(steps), np.concatenate(tasks), weights)
    return tuple(prior._replace(mean_count=count / 2, covariance_count=count) for count in COUNTS)


def upper_tail(predictions: Predictions, values: np.ndarray | float) -> np.ndarray:
    """Returns the probabilities that last values are above some values."""
    from scipy.special import stdtr  # importing it takes a tenth of a second

    return stdtr(predictions.degrees, (predictions.location - values) / predictions.scale)


def next_lower(values: np.ndarray) -> np.ndarray:
    """Returns for each value the greatest one below it, which a curve with this value must exceed to be the best."""
    sorted_values = np.sort(values)
    return sorted_values[np.maximum(np.searchsorted(sorted_values, values) - 1, 0)]


def stopping_gains(steps: np.ndarray) -> np.ndarray:
    """Returns the gain of stopping at each step but the last, f64[G - 1]: a power of the share of steps that remain."""
    return np.asarray((1.0 - steps[:-1] / steps[-1]) ** _GAIN_POWER)


def surprises(tails: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Returns -log of the least ratio, over the beginnings of each curve, of probabilities f64[n, G - 1] to gains."""
    return -np.log(np.maximum((tails / gains).min(-1), 1e-300))


def top_weights(last: np.ndarray) -> np.ndarray:
    """Returns the weights of curves in calibration: 1 for the best third, 0.1 for the others."""
    weights = np.full(len(last), 0.1)
    weights[np.argsort(-last, kind="stable")[: -(-len(last) // 3)]] = 1.0
    return weights
