"""Figures: average rank and average regret against trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dre_jax.benchmark.compare import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours: told apart with any colour vision, and in this order also in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
LINES = ("-", "--", "-.", ":")


def style(index: int) -> dict[str, Any]:
    """Colour and line of the method at an index: lines differ as well, for print."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)], "linewidth": 1.8}


def _curves(
    axes: Axes, comparison: Comparison, values: npt.NDArray[np.float64], band: npt.NDArray[np.float64] | None
) -> None:
    trials = np.arange(comparison.n_trials + 1)
    for i, name in enumerate(comparison.methods):
        look = style(i)
        axes.plot(trials, values[i], label=name, **look)
        if band is not None:
            axes.fill_between(trials, values[i] - band[i], values[i] + band[i], color=look["color"], alpha=0.15, lw=0)
    axes.set_xlim(0, comparison.n_trials)
    axes.set_xlabel("Trials after the initial design")
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_regret(comparison: Comparison, path: Path, title: str) -> None:
    """Average regret against trials on a logarithmic axis, a band of one standard error over tasks; PNG or SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    values = comparison.average_regret()
    _curves(axes, comparison, values, comparison.standard_error())
    positive = values[values > 0]
    if positive.size:  # else everyone is at the optimum throughout, which a logarithmic axis cannot show
        axes.set_yscale("log")
        axes.set_ylim(bottom=positive.min() / 2)
    axes.set_ylabel("Average regret (band: ±1 standard error over tasks)")
    axes.set_title(title)
    axes.legend(frameon=False)
    _save(figure, path)


def draw_rank(comparison: Comparison, path: Path, title: str) -> None:
    """Average rank against trials; PNG or SVG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    _curves(axes, comparison, comparison.average_rank(), None)
    axes.set_ylabel("Average rank (lower is better)")
    axes.set_title(title)
    axes.legend(frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    from dre_jax.data.files import atomic_writer

    with atomic_writer(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=160)
    plt.close(figure)
