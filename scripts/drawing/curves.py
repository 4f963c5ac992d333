"""Values over trials, with bands, and the names at the lines' ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from drawing.theme import Theme, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STEP = 0.065  # between names, of the height of the axes


class Curve(NamedTuple):
    """A line; T values over `at`."""

    name: str
    at: Sequence[float]
    value: Sequence[float]
    error: Sequence[float]


def paint_curves(axes: Axes, curves: Sequence[Curve], theme: Theme, *, log: bool, names: bool = True) -> None:
    """Draws lines with bands of ± error, thicker for the first, which stands for the library."""
    colours = dict(zip([curve.name for curve in curves], (*theme.colours, theme.ink), strict=False))
    colours[curves[-1].name] = theme.ink
    for curve in curves:
        value, error = np.asarray(curve.value), np.asarray(curve.error)
        first = curve is curves[0]
        colour = colours[curve.name]
        low = np.maximum(value - error, 1e-4) if log else value - error
        axes.fill_between(curve.at, low, value + error, color=colour, alpha=0.22 if first else 0.14, lw=0)
        axes.plot(curve.at, value, color=colour, lw=2.4 if first else 1.5, label=curve.name)
    if log:
        axes.set_yscale("log")
        axes.set_ylim(bottom=max(1e-4, 0.55 * min(min(curve.value) for curve in curves)))
        plain_numbers(axes.yaxis)
    axes.grid(axis="y", lw=0.6)
    axes.margins(x=0.0)
    if names:
        _names_at_ends(axes, curves, colours, log=log)


def _names_at_ends(axes: Axes, curves: Sequence[Curve], colours: Mapping[str, str], *, log: bool) -> None:
    """Each name beside its line's end, moved apart where they would touch."""
    low, high = axes.get_ylim()
    scale = np.log if log else np.asarray
    ends = {curve.name: float(curve.value[-1]) for curve in curves}
    place = {name: float((scale(end) - scale(low)) / (scale(high) - scale(low))) for name, end in ends.items()}
    order = sorted(place, key=lambda name: place[name])
    for below, name in pairwise(order):
        place[name] = max(place[name], place[below] + STEP)
    place[order[-1]] = min(place[order[-1]], 1.0)
    for above, name in pairwise(reversed(order)):
        place[name] = min(place[name], place[above] - STEP)
    for name, height in place.items():
        weight = "bold" if name == curves[0].name else "normal"
        axes.text(1.015, height, name, transform=axes.transAxes, color=colours[name], va="center", weight=weight)
