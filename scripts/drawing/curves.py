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


def paint_curves(axes: Axes, curves: Sequence[Curve], theme: Theme) -> None:
    """Draws lines on a logarithmic scale with bands of ± error; the first, which stands for the library, is thicker."""
    colours = dict(zip([curve.name for curve in curves], (*theme.colours, theme.ink), strict=False))
    colours[curves[-1].name] = theme.ink
    for curve in curves:
        value, error = np.asarray(curve.value), np.asarray(curve.error)
        first = curve is curves[0]
        colour = colours[curve.name]
        low, alpha = np.maximum(value - error, 1e-4), 0.22 if first else 0.14
        axes.fill_between(curve.at, low, value + error, color=colour, alpha=alpha, lw=0)
        axes.plot(curve.at, value, color=colour, lw=2.4 if first else 1.5, label=curve.name)
    axes.set_yscale("log")
    axes.set_ylim(bottom=max(1e-4, 0.55 * min(min(curve.value) for curve in curves)))
    plain_numbers(axes.yaxis)
    axes.grid(axis="y", lw=0.6)
    axes.margins(x=0.0)
    _names_at_ends(axes, curves, colours)


def _names_at_ends(axes: Axes, curves: Sequence[Curve], colours: Mapping[str, str]) -> None:
    """Each name beside its line's end, moved apart where they would touch."""
    low, high = np.log(axes.get_ylim())
    place = {curve.name: float((np.log(curve.value[-1]) - low) / (high - low)) for curve in curves}
    order = sorted(place, key=lambda name: place[name])
    for below, name in pairwise(order):
        place[name] = max(place[name], place[below] + STEP)
    place[order[-1]] = min(place[order[-1]], 1.0)
    for above, name in pairwise(reversed(order)):
        place[name] = min(place[name], place[above] - STEP)
    for name, height in place.items():
        weight = "bold" if name == curves[0].name else "normal"
        axes.text(1.015, height, name, transform=axes.transAxes, color=colours[name], va="center", weight=weight)
