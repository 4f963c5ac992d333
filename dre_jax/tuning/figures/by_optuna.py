"""Figures by hyperparameter, which Optuna draws: slices, contours and importance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dre_jax.errors import import_extra
from dre_jax.report.style import own_settings
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.tuning.figures.values import drawn_values
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.study.trial import Trial

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
    import_extra("optuna", "optuna", "optuna")
    complete = [trial for trial in trials if trial.state == "complete"]
    values = drawn_values(complete, direction)
    if len({*values.tolist()}) < 2:
        return
    from optuna.importance import get_param_importances
    from optuna.visualization import matplotlib as plots

    from dre_jax.tuning.optuna.export import study_of_trials

    with optuna_logs_at("ERROR"):
        drawn = [replace(trial, value=float(value)) for trial, value in zip(complete, values, strict=True)]
        study = study_of_trials(space, drawn, [direction])
        shares = get_param_importances(study)
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

    with own_settings({"figure.constrained_layout.use": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plots are experimental
        plot(study, **options)
        figure = plt.gcf()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    plt.close(figure)
    return figure
