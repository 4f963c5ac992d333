"""Figures by hyperparameter, which Optuna draws: slices, contours and importance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dre_jax.report.style import fixed_settings
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.space.space import Space
from dre_jax.tuning.figures.importance import drawn_study, shares_of
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna.study import Study

_PANELS = 4
"""Slices in a figure."""


def optuna_figures(space: Space, trials: Sequence[Trial], direction: str) -> Iterator[tuple[str, Figure]]:
    """Yields headings and figures: slices, four to a figure, contours of the two most important, importance.

    Nothing for fewer than two complete trials with different values. Values far worse than the others are drawn at the
    edge. Raises `MissingExtraError` without Optuna.
    """
    study = drawn_study(space, trials, direction)
    if study is None:
        return
    from optuna.visualization import matplotlib as plots

    with optuna_logs_at("ERROR"):
        shares = shares_of(study)
        names = [name for name in space if name in shares]
        for start in range(0, len(names), _PANELS):
            number = f" {start // _PANELS + 1}" if len(names) > _PANELS else ""
            yield f"Slices{number}", _figure(plots.plot_slice, study, params=names[start : start + _PANELS])
        if len(names) > 1:
            yield "Contours", _figure(plots.plot_contour, study, params=[*shares][:2])
        yield "Importance", _figure(plots.plot_param_importances, study)


def _figure(plot: Callable[..., Any], study: Study, **options: Any) -> Figure:
    """Returns the figure of one of Optuna's plots, which changes no setting of matplotlib and stays out of pyplot."""
    from matplotlib import pyplot as plt

    with fixed_settings({"figure.constrained_layout.use": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plots are experimental
        plot(study, **options)
        figure = plt.gcf()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    plt.close(figure)
    return figure
