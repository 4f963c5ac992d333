"""The figure of how the best configuration moves with the features of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.data.features import FeatureColumn, FeatureSpace, FeatureValue, checked_number, to_scale
from dre_jax.data.scale import Scale
from dre_jax.report.style import COLOURS, display_name, new_figure
from dre_jax.space.space import Space
from dre_jax.tuning.past.studies import PastStudies
from dre_jax.tuning.surrogates.scaling import Scaling, Slope, numeric_columns, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_HYPERPARAMETERS, _MAX_FEATURES = 5, 4
_BEST, _SHARE = 5, 4
"""The best runs of a past task: so many, but at most one of so many of its runs."""
_GREY = "#8C8C8C"
_Floats = npt.NDArray[np.float64]


class ScalingPanel(NamedTuple):
    """A hyperparameter and a feature, as decimal logarithms where they are on a log scale."""

    slope: Slope
    features: _Floats
    """f[S]: of the past tasks, NaN where unknown."""
    best: _Floats
    """f[S]: mean of the hyperparameter in the best runs of each past task, at the means of the other features by their
    slopes; NaN without such a run."""
    bounds: tuple[float, float]
    """Of the hyperparameter."""
    task: float | None
    """The feature of the task that the surrogate is for, if it is known."""

    def trend(self, features: _Floats) -> _Floats:
        """Returns the hyperparameter by the slope at features f[L], f[3, L]: less two standard errors, itself, more."""
        is_known = ~np.isnan(self.features + self.best)
        distance = features - self.features[is_known].mean()
        errors = np.array([-2.0, 0.0, 2.0])[:, None] * self.slope.error * np.abs(distance)
        return np.clip(self.best[is_known].mean() + self.slope.slope * distance + errors, *self.bounds)


def scaling_panels(
    scaling: Scaling, space: Space, features: FeatureSpace, studies: PastStudies, task: Mapping[str, FeatureValue]
) -> list[ScalingPanel]:
    """Returns the panels of the clearest hyperparameters and the first numeric features; empty if there are none.

    ``task`` has the features of the task that the surrogate is for. Hyperparameters that no task has are left out.
    """
    if studies.features is None:
        return []
    rows, columns = studies.features.astype(np.float64), features.columns
    slopes = {(slope.hyperparameter, slope.feature): slope for slope in scaling.slopes}
    drawn = [column for column in columns if column.choice is None][:_MAX_FEATURES]
    panels = []
    for name in _clearest(scaling.slopes, drawn):
        best, (_, scale) = best_values(space, studies, name), numeric_columns(space)[name]
        bounds = _lowest(scale), _lowest(scale) + span(scale)
        by_column = np.array([slopes[name, column].slope for column in columns])
        effects = np.nan_to_num((rows - np.nanmean(rows, axis=0)) * by_column)
        for column in drawn:
            p = columns.index(column)
            kind, other_effects = features.types[column.feature], effects.sum(axis=1) - effects[:, p]
            number = checked_number(column.feature, kind, task.get(column.feature))
            of_task = None if number is None else to_scale(kind, number)
            panels.append(ScalingPanel(slopes[name, column], rows[:, p], best - other_effects, bounds, of_task))
    return [panel for panel in panels if not np.isnan(panel.features + panel.best).all()]


def _clearest(slopes: Sequence[Slope], features: Sequence[FeatureColumn]) -> list[str]:
    """Returns the hyperparameters whose slopes are the largest in units of their errors, in their order."""
    clarity: dict[str, float] = {}
    for slope in slopes:
        if slope.feature in features:
            ratio = abs(slope.slope) / slope.error if slope.error > 0 else abs(slope.slope) * np.inf
            clarity[slope.hyperparameter] = max(clarity.get(slope.hyperparameter, 0.0), float(np.nan_to_num(ratio)))
    kept = sorted(clarity, key=lambda name: -clarity[name])[:_MAX_HYPERPARAMETERS]
    return [name for name in clarity if name in kept]


def best_values(space: Space, studies: PastStudies, name: str) -> _Floats:
    """Returns the mean of a hyperparameter in the best runs of each past study f[S]; its logarithm on a log scale.

    NaN for a study that has no run with this hyperparameter.
    """
    position, scale = numeric_columns(space)[name]
    flags = [i for i, column in enumerate(space.columns) if column.parent == name and column.kind == "missing"]
    x, y, where = (np.asarray(array) for array in studies.tasks)
    means = np.full(len(x), np.nan)
    for s, (rows, responses, is_row) in enumerate(zip(x, y, where, strict=True)):
        active = np.flatnonzero(is_row & ~(rows[:, flags] > 0.5).any(axis=1))
        n = min(_BEST, -(-len(active) // _SHARE))
        if n:
            best = active[np.argsort(-responses[active], kind="stable")[:n]]
            means[s] = _lowest(scale) + span(scale) * rows[best, position].astype(np.float64).mean()
    return means


def _lowest(scale: Scale) -> float:
    return float(np.log10(scale.low + scale.offset)) if scale.log else scale.low


def plot_scaling(panels: Sequence[ScalingPanel]) -> Figure:
    """Returns a figure with a panel for each hyperparameter and feature of `scaling_panels`, at least one."""
    names = list(dict.fromkeys(panel.slope.hyperparameter for panel in panels))
    features = list(dict.fromkeys(panel.slope.feature for panel in panels))
    with new_figure((1.2 + 2.7 * len(features), 0.9 + 1.9 * len(names))) as figure:
        grid = figure.subplots(len(names), len(features), squeeze=False, sharex="col", sharey="row")
        for panel in panels:
            _draw(grid[names.index(panel.slope.hyperparameter)][features.index(panel.slope.feature)], panel)
        for axes, name in zip(grid[:, 0], names, strict=True):
            axes.set_ylabel(f"best {display_name(name, 20)}")
        for axes, feature in zip(grid[-1], features, strict=True):
            axes.set_xlabel(display_name(feature.name, 24))
        handles = {
            label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=2 * min(len(features), 2), frameon=False
        )
    return figure


def _draw(axes: Axes, panel: ScalingPanel) -> None:
    """Draws the best values of the past tasks, and the trend with its error; the title says how clear it is."""
    slope = panel.slope
    known = panel.features[~np.isnan(panel.features)]
    ends = [*known, *([] if panel.task is None else [panel.task])]
    places = np.linspace(min(ends), max(ends), 50)
    low, trend, high = panel.trend(places)

    def x(values: Any) -> Any:
        return 10.0**values if slope.feature_is_log else values

    def y(values: Any) -> Any:
        return 10.0**values if slope.is_log else values

    colour = COLOURS[0] if slope.is_clear else _GREY
    label = "trend, ± 2 errors" if slope.is_clear else "no clear trend"
    axes.fill_between(x(places), y(low), y(high), color=colour, alpha=0.18, linewidth=0)
    axes.plot(x(places), y(trend), color=colour, linewidth=1.8, label=label)
    axes.scatter(x(panel.features), y(panel.best), s=16, color="black", zorder=3, label="best runs of a past task")
    if panel.task is not None:
        axes.axvline(x(panel.task), color=COLOURS[1], linestyle="--", linewidth=1.2, label="this task")
    if slope.feature_is_log:
        axes.set_xscale("log")
    if slope.is_log:
        axes.set_yscale("log")
    size, uncertainty = slope.numbers
    unit = f"{'decades ' if slope.is_log else ''}per {'decade' if slope.feature_is_log else 'unit'}"
    axes.set_title(f"{'−' if slope.slope < 0 else '+'}{size} ± {uncertainty} {unit}", fontsize=8.5, color=colour)
    axes.spines[["top", "right"]].set_visible(False)
