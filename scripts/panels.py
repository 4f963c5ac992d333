"""The picture of kinds of tasks: regret against trials, one panel a kind."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

KINDS = {
    "forests": "defect predictors",
    "gcc": "compiler options (GCC)",
    "imagemagick": "ImageMagick",
    "alone-": "configurable programs",
    "gpu-convolution": "GPU kernel: convolution",
    "gpu-polygons": "GPU kernel: polygons",
    "arylation": "reactions: arylation",
    "buchwald": "reactions: Buchwald-Hartwig",
    "iaml_glmnet": "live: elastic net",
    "rbv2_rpart": "live: decision tree",
}
"""Families of `compare_rivals.py`, as a reader knows them."""
TUNERS = {
    "hedged-prior": "dre_jax with past tasks",
    "gp-mixture": "dre_jax without",
    "gp-sampler-best": "Optuna GP, best of past tasks first",
    "tpe-best": "Optuna TPE, best of past tasks first",
    "random": "random search",
}
WITHOUT_PAST = {"gp-sampler-best": "gp-sampler", "tpe-best": "tpe"}
"""What stands for a tuner where there are no past tasks."""
_COLUMNS = 4
_LOWEST = 0.003


def paint(figure: Figure, content: Mapping[str, Any], colours: tuple[str, ...], ink: str, faint: str) -> None:
    """Draws one panel for each family of what `compare_rivals.py --curves` wrote.

    Args:
      content: its JSON.
      colours: one for each tuner but the last.
      ink: colour of the last.
      faint: colour of grids.
    """
    rows = -(-len(KINDS) // _COLUMNS)
    panels = figure.subplots(rows, _COLUMNS, sharey=True)
    shades = dict(zip(TUNERS, (*colours[: len(TUNERS) - 1], ink), strict=True))
    for axes, (family, title) in zip(panels.flat, KINDS.items(), strict=False):
        curves = content["families"][family]
        for tuner, legend in TUNERS.items():
            curve = curves.get(tuner) or curves.get(WITHOUT_PAST.get(tuner))
            if curve:
                _line(axes, curve, shades[tuner], legend, tuner == next(iter(TUNERS)))
        axes.set_title(f"{title} ({content['tasks'][family]})", fontsize=8)
        axes.set_yscale("log")
        axes.set_ylim(_LOWEST, 1.5)
        axes.yaxis.set_major_locator(FixedLocator([0.01, 0.1, 1.0]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(labelsize=7.5)
        axes.grid(axis="y", lw=0.5, color=faint)
        axes.margins(x=0.0)
    figure.supxlabel("trials after two at random", fontsize=9)
    figure.supylabel("mean regret, lower is better", fontsize=9)
    for axes in panels.flat[len(KINDS) :]:
        axes.set_visible(False)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower right", fontsize=8.5)


def _line(axes: Any, curve: Mapping[str, list[float]], colour: str, legend: str, is_first: bool) -> None:
    value, error = np.asarray(curve["regret"]), np.asarray(curve["error"])
    at = np.arange(len(value))
    if is_first:
        low, high = np.maximum(value - error, _LOWEST / 10), np.maximum(value + error, _LOWEST / 10)
        axes.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
    axes.plot(at, np.maximum(value, _LOWEST / 10), color=colour, lw=2.2 if is_first else 1.3, label=legend)
