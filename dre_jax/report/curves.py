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
from dre_jax.report.style import display_name, line, save, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Quantity = Literal["rank", "regret"]
Floats = npt.NDArray[np.float64]

LABELS = {"rank": "Average rank (lower is better)", "regret": "Average regret (lower is better)"}
# More bands than this only cover each other.
MOST_BANDS = 8
# Ranks are made of regret rounded to 8 decimals: below that a difference counts for nothing.
SMALLEST = 1e-8
# A single curve that drops to almost nothing would press all others together.
DECADES = 4.0
LEGEND_SIZE = 8.5


class Curve(NamedTuple):
    """One method's line."""

    method: str
    position: int
    """Its position in `Comparison.methods`, which decides its look."""
    value: Floats
    """f64[T + 1], as drawn: never below the foot."""
    low: Floats | None
    high: Floats | None
    """f64[T + 1], or None without a band."""


class Curves(NamedTuple):
    """The content of one panel."""

    quantity: Quantity
    title: str
    curves: tuple[Curve, ...]
    foot: float | None
    """Lower end of a logarithmic axis; None for a linear one."""
    lifted: bool
    """True where some value lies below the foot and is drawn on it."""
    notes: tuple[str, ...]
    """Remarks below the axis: on the band, on lifted values."""


def curves_data(comparison: Comparison, quantity: Quantity, title: str, *, bands: bool = True) -> Curves:
    """Average rank or regret of every method with ±1 standard error over tasks; no band beyond eight methods.

    Regret has a logarithmic axis over four decades at most, unless all of it is zero.
    """
    average = comparison.average_rank() if quantity == "rank" else comparison.average_regret()
    error, note = band(comparison, quantity) if bands else (None, "")
    foot = _foot(average, error) if quantity == "regret" else None
    bottom = -np.inf if foot is None else foot
    lifted = bool((average < bottom).any())
    curves = tuple(
        Curve(
            method,
            i,
            np.maximum(average[i], bottom),
            None if error is None else np.maximum(average[i] - error[i], bottom),
            None if error is None else np.maximum(average[i] + error[i], bottom),
        )
        for i, method in enumerate(comparison.methods)
    )
    notes = (note, f"Averages below {foot:.2g}, zero among them, are drawn at the foot" if lifted else "")
    return Curves(quantity, title, curves, foot, lifted, tuple(filter(None, notes)))


def band(comparison: Comparison, quantity: Quantity) -> tuple[Floats | None, str]:
    """Half the height of every method's band, f64[methods, T + 1], or None; and what it is or why there is none."""
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


def draw_curves(data: Curves, *paths: Path) -> None:
    """One panel with its legend below; PNG or SVG by each path's ending."""
    names = [curve.method for curve in data.curves]

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        _panel(axes, data, small=False)
        axes.set_xlabel("\n".join(("Trials after the initial design", *data.notes)))
        axes.set_ylabel(LABELS[data.quantity])
        axes.set_title(_wrapped(data.title, 74), fontsize=10.5)
        _legend(figure, names, 7.0)

    save((7.0, 4.1 + 0.19 * _rows(names, 7.0)), paint, *paths)


def draw_grid(panels: Sequence[Curves], title: str, *paths: Path) -> None:
    """Small panels, four in a row at most, with one legend below; PNG or SVG by each path's ending."""
    columns = min(4, math.ceil(math.sqrt(len(panels))))
    rows = math.ceil(len(panels) / columns)
    names = [curve.method for curve in panels[0].curves]
    width = max(6.0, 2.75 * columns)
    lifted = any(panel.lifted for panel in panels)

    def paint(figure: Figure) -> None:
        grid = figure.subplots(rows, columns, squeeze=False, sharey=panels[0].quantity == "rank")
        for axes, panel in zip(grid.flat, panels, strict=False):
            _panel(axes, panel, small=True)
            axes.set_title(panel.title, fontsize=8.5)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        foot = "\nEach panel has an axis of its own; averages below its foot are drawn there" if lifted else ""
        figure.supylabel(LABELS[panels[0].quantity], fontsize=9.5)
        figure.suptitle(_wrapped(title, round(11 * width)), fontsize=10.5)
        # Constrained layout would put a label of the whole figure on top of the legend.
        _legend(figure, names, width, f"Trials after the initial design; no bands{foot}")

    save((width, 2.0 * rows + 1.2 + 0.19 * _rows(names, width)), paint, *paths)


def _panel(axes: Axes, data: Curves, *, small: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    for curve in data.curves:
        trials = np.arange(curve.value.size)
        look = line(curve.position)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(trials, curve.low, curve.high, color=look["color"], alpha=0.15, lw=0)
        every = max(1, (trials.size - 1) // 8)
        # Each method's markers start elsewhere, so that they do not cover each other.
        first = (curve.position * 2) % every if every > 1 else 0
        look.update({"markersize": 2.8, "linewidth": 1.1} if small else {})
        axes.plot(trials, curve.value, markevery=(first, every), **look)
    axes.set_xlim(0, max(1, data.curves[0].value.size - 1))
    axes.xaxis.set_major_locator(MaxNLocator(5 if small else 8, integer=True, steps=[1, 2, 5, 10]))
    _scale(axes, data)
    if small:
        axes.minorticks_off()  # which would take most of the time in a grid
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=7 if small else 8)
    axes.spines[["top", "right"]].set_visible(False)


def _scale(axes: Axes, data: Curves) -> None:
    if data.quantity == "regret" and data.foot is None:
        axes.set_ylim(-0.02, 1.0)
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if data.foot is None:
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        return
    top = 1.15 * max(float((c.value if c.high is None else c.high).max()) for c in data.curves)
    axes.set_yscale("log")
    bottom = data.foot * (data.foot / top) ** 0.03  # a line on the foot stays clear of the axis
    axes.set_ylim(bottom, top)
    span = math.log10(top / bottom)
    if span < 0.6:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    else:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if span < 2.2 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _columns(names: Sequence[str], width: float) -> int:
    each = 0.75 + text_width([display_name(name) for name in names], LEGEND_SIZE)
    return max(1, min(len(names), int((width - 0.3) / each)))


def _rows(names: Sequence[str], width: float) -> int:
    return math.ceil(len(names) / _columns(names, width))


def _legend(figure: Figure, names: Sequence[str], width: float, title: str | None = None) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **line(i)) for i in range(len(names))]
    # Matplotlib leaves out labels that start with an underscore, so the names are put in afterwards.
    legend = figure.legend(
        handles,
        [f"m{i}" for i in range(len(names))],
        loc="outside lower center",
        ncols=_columns(names, width),
        frameon=False,
        fontsize=LEGEND_SIZE,
        title=title,
        title_fontsize=9.0,
        handlelength=3.2,
        columnspacing=1.4,
    )
    legend.get_title().set_multialignment("center")
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(display_name(name))


def _wrapped(text: str, width: int) -> str:
    return "\n".join(part for row in text.splitlines() for part in textwrap.wrap(row, width) or [""])
