"""Curves against trials: average rank and average regret, over all runs or in one panel per search space."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.report.comparison import Comparison, pluralize
from dre_jax.report.style import display_name, line, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Quantity = Literal["rank", "regret"]
Floats = npt.NDArray[np.float64]

LABELS = {"rank": "Average rank (lower is better)", "regret": "Average regret (lower is better)"}
# More bands than this only cover each other.
MOST_BANDS = 8
# Ranks are those of regret rounded to 8 decimals: smaller differences do not count.
SMALLEST = 1e-8
# A single curve near zero would press all others together.
DECADES = 4.0
LEGEND_SIZE = 8.5


class Curves(NamedTuple):
    """The content of one panel."""

    quantity: Quantity
    title: str
    """Empty for the only panel of a figure."""
    methods: tuple[str, ...]
    value: Floats
    """f64[methods, T + 1], as drawn: never below the foot."""
    band: tuple[Floats, Floats] | None
    """Lower and upper ends, f64[methods, T + 1], or None without bands."""
    foot: float | None
    """Lower end of a logarithmic axis; None for a linear one."""
    notes: tuple[str, ...]
    """Remarks below the axis: on the band, on averages below the foot."""


def curves_data(comparison: Comparison, quantity: Quantity, title: str = "", *, bands: bool = True) -> Curves:
    """Average rank or regret of every method with ±1 standard error over tasks; no band beyond eight methods.

    Regret has a logarithmic axis over four decades at most, unless all of it is zero.
    """
    average = comparison.average_rank() if quantity == "rank" else comparison.average_regret()
    error, note = band(comparison, quantity) if bands else (None, "No bands")
    foot = _foot(average, error) if quantity == "regret" else None
    bottom = -np.inf if foot is None else foot
    notes = [note]
    if (average < bottom).any():
        notes.append("Averages below the axis, zero among them, are drawn at the foot")
    return Curves(
        quantity,
        title,
        comparison.methods,
        np.maximum(average, bottom),
        None if error is None else (np.maximum(average - error, bottom), np.maximum(average + error, bottom)),
        foot,
        tuple(notes),
    )


def band(comparison: Comparison, quantity: Quantity) -> tuple[Floats | None, str]:
    """Half the height of every method's band, f64[methods, T + 1], or None, and a remark on the band or its absence."""
    tasks = len(set(comparison.tasks))
    if tasks < 2:
        return None, "No band: one task has no standard error over tasks"
    if len(comparison.methods) > MOST_BANDS:
        return None, f"No bands: those of more than {MOST_BANDS} methods cover each other"
    error = comparison.rank_error() if quantity == "rank" else comparison.standard_error()
    return error, f"Band: ±1 standard error over {tasks} tasks"


def _foot(average: Floats, error: Floats | None) -> float | None:
    positive = average[average >= SMALLEST]
    if not positive.size:
        return None
    lowest, highest = float(positive.min()), float(positive.max())
    if error is not None:  # room for the bands, but not for one that reaches zero
        lowest = max(lowest / 3.0, min(lowest, float((average - error)[average >= SMALLEST].min())))
    return max(lowest / 1.1, highest * 10.0**-DECADES)


def grid_data(comparison: Comparison, quantity: Quantity) -> tuple[Curves, ...]:
    """One panel a search space, in the order of the comparison, without bands."""
    panels = []
    for space in comparison.spaces:
        part = comparison.of_space(space)
        title = f"{display_name(space)} ({pluralize(len(set(part.tasks)), 'task')})"
        panels.append(curves_data(part, quantity, title, bands=False))
    return tuple(panels)


def draw_panels(panels: Sequence[Curves], title: str, *paths: Path) -> None:
    """One panel, or small ones, four in a row at most, with one legend below; PNG or SVG by each path's ending."""
    columns = min(4, math.ceil(math.sqrt(len(panels))))
    rows = math.ceil(len(panels) / columns)
    small = len(panels) > 1
    width = max(7.0, 2.75 * columns)
    # Matplotlib leaves out labels that start with an underscore.
    names = [f" {display_name(name)}" for name in panels[0].methods]
    n_columns = min(len(names), max(1, int(width / (0.8 + 0.075 * max(map(len, names))))))
    notes = dict.fromkeys(note for panel in panels for note in panel.notes)
    height = 2.0 * rows + 1.2 if small else 4.1
    with new_figure((width, height + 0.19 * math.ceil(len(names) / n_columns)), *paths) as figure:
        from matplotlib.lines import Line2D

        grid = figure.subplots(rows, columns, squeeze=False, sharey=panels[0].quantity == "rank")
        for axes, panel in zip(grid.flat, panels, strict=False):
            _panel(axes, panel, small=small)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        figure.supylabel(LABELS[panels[0].quantity], fontsize=9.5)
        figure.suptitle(textwrap.fill(title, round(11 * width)), fontsize=10.5)
        legend = figure.legend(
            [Line2D([], [], **line(i)) for i in range(len(names))],
            names,
            loc="outside lower center",
            ncols=n_columns,
            frameon=False,
            fontsize=LEGEND_SIZE,
            # Constrained layout would put a label of the whole figure on top of the legend.
            title="\n".join(("Trials after the initial design", *notes)),
            title_fontsize=9.0,
            handlelength=3.2,
        )
        legend.get_title().set_multialignment("center")


def _panel(axes: Axes, data: Curves, *, small: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    trials = np.arange(data.value.shape[1])
    every = max(1, (trials.size - 1) // 8)
    for i, value in enumerate(data.value):
        look = line(i) | ({"markersize": 2.8, "linewidth": 1.1} if small else {})
        if data.band is not None:
            axes.fill_between(trials, data.band[0][i], data.band[1][i], color=look["color"], alpha=0.15, lw=0)
        # Each method's markers start at another trial, so that they do not cover each other.
        axes.plot(trials, value, markevery=(2 * i % every, every), **look)
    axes.set_xlim(0, max(1, trials.size - 1))
    axes.xaxis.set_major_locator(MaxNLocator(5 if small else 8, integer=True, steps=[1, 2, 5, 10]))
    if data.foot is not None:
        span = math.log10(data.value.max() / data.value.min())
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(
            MaxNLocator(5) if span < 0.6 else LogLocator(subs=(1.0, 2.0, 5.0) if span < 2.2 else (1.0,))
        )
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif data.quantity == "regret":
        axes.set_ylim(-0.02, 1.0)
    if small:
        axes.minorticks_off()  # which would take most of the time in a grid
    axes.set_title(data.title, fontsize=8.5)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=7 if small else 8)
    axes.spines[["top", "right"]].set_visible(False)
