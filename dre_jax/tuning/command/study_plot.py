"""Plot of a study: the value of each trial, and the best value so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.tuning.response_clipping import clip_responses
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
_GREY = "#8C8C8C"


class StudyPlotData(NamedTuple):
    """Data of the plot, by trial number."""

    direction: str
    numbers: npt.NDArray[np.int64]
    """i64[n], trials that have a value."""
    values: Floats
    """f64[n], as drawn: finite, and clipped if far worse than the others."""
    clipped: npt.NDArray[np.bool_]
    """bool[n], which of them are clipped."""
    best: Floats
    """f64[n], the best so far, as drawn."""
    failed: npt.NDArray[np.int64]
    """i64[m], trials that failed."""
    n_trials: int


def study_plot_data(trials: Sequence[Trial], direction: str) -> StudyPlotData:
    """Returns the data of a study's plot.

    Example:
      >>> trials = [Trial(0, {}, "complete", 2.0), Trial(1, {}, "failed"), Trial(2, {}, "complete", 3.0)]
      >>> study_plot_data(trials, "minimize").best.tolist()
      [2.0, 2.0]
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    sign = 1.0 if direction == "maximize" else -1.0
    raw = np.array([trial.value for trial in complete], np.float64)
    clipped = sign * clip_responses(sign * raw) if len(raw) else raw
    return StudyPlotData(
        direction,
        np.array([trial.number for trial in complete], np.int64),
        clipped,
        clipped != raw,
        sign * np.maximum.accumulate(sign * clipped),
        np.array([trial.number for trial in trials if trial.state == "failed"], np.int64),
        len(trials),
    )


def plot_study(data: StudyPlotData, *paths: Path) -> None:
    """Draws a plot as PNG or SVG, by each path's suffix. Raises `DataError` if a file cannot be written."""
    from matplotlib.ticker import MaxNLocator

    from dre_jax.report.style import COLOURS, save

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        exact, clipped = ~data.clipped, data.clipped
        if len(data.numbers):
            until, best = [*data.numbers, data.n_trials - 1], [*data.best, data.best[-1]]
            axes.step(until, best, where="post", color=COLOURS[0], linewidth=1.8, label="best so far")
        points: dict[str, Any] = {"s": 18, "color": _GREY, "zorder": 3}
        axes.scatter(data.numbers[exact], data.values[exact], label="trial", **points)
        if clipped.any():
            away = "^" if data.direction == "minimize" else "v"
            axes.scatter(data.numbers[clipped], data.values[clipped], marker=away, label="trial, farther off", **points)
        if len(data.failed):
            foot = np.full(len(data.failed), 0.025)
            style: dict[str, Any] = {
                "color": COLOURS[1],
                "marker": "x",
                "transform": axes.get_xaxis_transform(),
                "label": "failed",
            }
            axes.scatter(data.failed, foot, s=24, **style)
        axes.set_xlim(-0.5, max(data.n_trials, 1) - 0.5)
        axes.set_xlabel("Trial")
        axes.set_ylabel(f"Value ({'lower' if data.direction == 'minimize' else 'higher'} is better)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _clear_frame(axes)

    save((6.4, 3.6), paint, *paths)


class FrontPlotData(NamedTuple):
    """Data of the plot of a study of several objectives: its first two."""

    names: tuple[str, str]
    values: Floats
    """f64[n, 2], of the complete trials."""
    in_front: npt.NDArray[np.bool_]
    """bool[n], which are in the front of all objectives."""


def front_plot_data(trials: Sequence[Trial], front: Sequence[Trial], names: Iterable[str]) -> FrontPlotData:
    """Returns the data of the plot of a front.

    Example:
      >>> trials = [Trial(i, {}, "complete", _values={"a": 1.0, "b": float(i)}) for i in range(2)]
      >>> front_plot_data(trials, trials[:1], ["a", "b"]).in_front.tolist()
      [True, False]
    """
    first, second, *_ = names
    complete = [trial for trial in trials if trial.state == "complete"]
    values = np.array([[trial.values[first], trial.values[second]] for trial in complete], np.float64)
    best = {trial.number for trial in front}
    return FrontPlotData((first, second), values, np.array([trial.number in best for trial in complete], bool))


def plot_front(data: FrontPlotData, *paths: Path) -> None:
    """Draws the first two objectives as PNG or SVG, by each path's suffix. Raises `DataError` as `plot_study`."""
    from dre_jax.report.style import COLOURS, save

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        finite = np.isfinite(data.values).all(axis=1)
        other, front = data.values[finite & ~data.in_front], data.values[finite & data.in_front]
        axes.scatter(other[:, 0], other[:, 1], s=18, color=_GREY, label="trial")
        axes.scatter(front[:, 0], front[:, 1], s=30, color=COLOURS[0], zorder=3, label="front")
        axes.set(xlabel=data.names[0], ylabel=data.names[1])
        _clear_frame(axes)

    save((6.4, 3.6), paint, *paths)


def _clear_frame(axes: Axes) -> None:
    axes.grid(True, color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, borderaxespad=0.2)
