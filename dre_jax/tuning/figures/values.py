"""Figures of the trials alone: the history of values, the front, learning curves."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dre_jax.report.style import COLOURS, new_figure
from dre_jax.tuning.trials.objectives import AT_ANY_BUDGET, Objectives
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (6.4, 3.6)
GREY = "#8C8C8C"


def complete_in_space(trials: Iterable[Trial]) -> list[Trial]:
    """Returns the complete trials whose configurations are in the space of their study."""
    return [trial for trial in trials if trial.state == "complete" and trial.in_space]


def drawn_values(trials: Iterable[Trial], direction: str) -> npt.NDArray[np.float64]:
    """Returns the values f64[n] of complete trials as they are drawn: finite, and clipped if far worse than others."""
    sign = 1.0 if direction == "maximize" else -1.0
    responses = np.array([trial.value for trial in trials if trial.state == "complete"], np.float64) * sign
    return sign * clip_responses(responses) if len(responses) else responses


def clear_frame(axes: Axes) -> None:
    """Removes the frame's upper and right line."""
    axes.spines[["top", "right"]].set_visible(False)


def plot_history(trials: Sequence[Trial], direction: str) -> Figure:
    """Returns a figure of the value of each trial in the space, and of the best value so far."""
    from matplotlib.ticker import MaxNLocator

    complete = complete_in_space(trials)
    numbers, values = np.array([trial.number for trial in complete]), drawn_values(complete, direction)
    is_clipped = values != np.array([trial.value for trial in complete])
    failures = [trial.number for trial in trials if trial.state == "failed"]
    best = (np.minimum if direction == "minimize" else np.maximum).accumulate(values)
    with new_figure(SIZE) as figure:
        axes = figure.add_subplot()
        if complete:
            until = [*numbers, len(trials) - 1]
            axes.step(until, [*best, best[-1]], where="post", color=COLOURS[0], linewidth=1.8, label="best so far")
        points: dict[str, Any] = {"s": 18, "color": GREY, "zorder": 3}
        axes.scatter(numbers[~is_clipped], values[~is_clipped], label="trial", **points)
        if is_clipped.any():
            away = "^" if direction == "minimize" else "v"
            axes.scatter(numbers[is_clipped], values[is_clipped], marker=away, label="trial, farther off", **points)
        if failures:
            foot = axes.get_xaxis_transform()
            axes.scatter(
                failures, [0.025] * len(failures), s=24, color=COLOURS[1], marker="x", transform=foot, label="failed"
            )
        axes.set_xlim(-0.5, max(len(trials), 1) - 0.5)
        axes.set_xlabel("Trial")
        axes.set_ylabel(f"Value ({'lower' if direction == 'minimize' else 'higher'} is better)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _add_grid_and_legend(axes)
    return figure


def plot_front(trials: Sequence[Trial], front: Container[int], objectives: Objectives) -> Figure:
    """Returns a figure of the first two objectives; ``front`` has the numbers of the trials in the front of all."""
    first, second = (objective.name for objective in objectives[:2])
    shown = [trial for trial in trials if trial.state in AT_ANY_BUDGET and trial.in_space]
    values = np.array([[trial.values[first], trial.values[second]] for trial in shown], np.float64).reshape(-1, 2)
    in_front = np.array([trial.number in front for trial in shown], bool)
    is_paused = np.array([trial.state == "paused" for trial in shown], bool)
    finite = np.isfinite(values).all(axis=1)
    with new_figure(SIZE) as figure:
        axes = figure.add_subplot()
        masks = finite & ~in_front & ~is_paused, finite & ~in_front & is_paused, finite & in_front
        (x, y), (x_paused, y_paused), (x_front, y_front) = (values[mask].T for mask in masks)
        axes.scatter(x, y, s=18, color=GREY, label="trial")
        if len(x_paused):
            axes.scatter(x_paused, y_paused, s=18, facecolors="none", edgecolors=GREY, label="paused")
        axes.scatter(x_front, y_front, s=30, color=COLOURS[0], zorder=3, label="front")
        axes.set(xlabel=first, ylabel=second)
        _add_grid_and_legend(axes)
    return figure


def plot_curves(trials: Sequence[Trial], best: Container[int], direction: str) -> Figure:
    """Returns a figure of the learning curves: a stopped trial ends with a cross, the best ones are dark.

    Some of the trials reported intermediate values. The worst reports are cut off.
    """
    with new_figure(SIZE) as figure:
        axes = figure.add_subplot()
        for trial in sorted(trials, key=lambda trial: (trial.number in best, trial.state == "complete")):
            number = 6 if trial.number in best else 0 if trial.state == "complete" else 1
            style: Mapping[str, Any] = {"color": COLOURS[number], "lw": 1.0 + number / 6}
            marker = "x" if trial.state == "stopped" else ""
            axes.plot(list(trial.reports), list(trial.reports.values()), marker=marker, markevery=[-1], **style)
        reports = np.concatenate([list(trial.reports.values()) for trial in trials])
        if np.isfinite(reports).any():
            side, share = ("top", 95) if direction == "minimize" else ("bottom", 5)
            axes.set_ylim(**{side: np.percentile(reports[np.isfinite(reports)], share)})
        axes.set_xlabel("step")
        clear_frame(axes)
    return figure


def _add_grid_and_legend(axes: Axes) -> None:
    axes.grid(True, color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    clear_frame(axes)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, borderaxespad=0.2)
