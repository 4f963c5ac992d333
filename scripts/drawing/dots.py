"""A row a method or a variant, a dot for each budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from drawing.theme import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[tuple[float, float]]


def paint_dots(
    axes: Axes, rows: Sequence[str], series: Mapping[str, Numbers], theme: Theme, *, bold: Sequence[str] = ()
) -> None:
    """Draws values with bars of ± error: a row for each name, first on top, a colour for each series."""
    heights = np.arange(len(rows))[::-1]
    for colour, (label, numbers) in zip(theme.colours, series.items(), strict=False):
        value, error = np.transpose(numbers)
        low = np.minimum(error, value - 1e-4)
        axes.errorbar(value, heights, xerr=[low, error], fmt="o", color=colour, ms=4.5, lw=1, alpha=0.9, label=label)
    axes.set_yticks(heights, rows)
    for tick, name in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if name in bold else "normal")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(axis="both", lw=0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
