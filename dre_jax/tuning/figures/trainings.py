"""A figure of the trainings of a study with a fidelity."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_jax.report.style import COLOURS, new_figure
from dre_jax.tuning.fidelity.trainings import Training, trainings_of
from dre_jax.tuning.figures.values import GREY, SIZE, clear_frame
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOG_RATIO = 8.0
"""Ratio of the highest budget to the lowest one above which budgets are on a log scale."""


def plot_trainings(trials: Sequence[Trial], best: Container[int], direction: str) -> Figure:
    """Returns a figure of trainings with a budget: a line each, with a dot where it paused; the best ones are dark.

    Trainings that reached the highest budget are blue, others grey. The worst values are cut off.
    """
    trainings = [training for training in trainings_of(trials) if training.values]
    with new_figure(SIZE) as figure:
        axes = figure.add_subplot()
        for training in sorted(trainings, key=lambda training: (_is_best(training, best), training.reached)):
            is_best, is_complete = _is_best(training, best), training.state == "complete"
            colour = COLOURS[6] if is_best else COLOURS[0] if is_complete else GREY
            style: Mapping[str, Any] = {"color": colour, "lw": 2.0 if is_best else 1.0, "zorder": 2 + is_complete}
            axes.plot(list(training.values), list(training.values.values()), marker="o", ms=3.5, **style)
        budgets = sorted({budget for training in trainings for budget in training.values})
        values = np.array([value for training in trainings for value in training.values.values()], np.float64)
        if np.isfinite(values).any():
            shares = (0, 95) if direction == "minimize" else (5, 100)
            low, high = np.percentile(values[np.isfinite(values)], shares).tolist()
            room = 0.05 * (high - low) or 1.0
            axes.set_ylim(low - room, high + room)
        if budgets and budgets[-1] > _LOG_RATIO * budgets[0]:
            axes.set_xscale("log")
            axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets], minor=False)
            axes.minorticks_off()
        axes.set_xlabel("Budget")
        axes.set_ylabel(f"Value ({'lower' if direction == 'minimize' else 'higher'} is better)")
        clear_frame(axes)
    return figure


def _is_best(training: Training, best: Container[int]) -> bool:
    return any(trial.number in best for trial in training.trials)
