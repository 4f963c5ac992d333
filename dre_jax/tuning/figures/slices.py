"""Figures by hyperparameter: values, what the study's model predicts around the best trial, and importance."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.errors import ConfigError, DataError
from dre_jax.report.style import COLOURS, new_figure
from dre_jax.runtime.optuna_logs import optuna_logs_at
from dre_jax.tuning.figures.trials import clear_frame, drawn_values
from dre_jax.tuning.predicted_responses import Prediction
from dre_jax.tuning.space.parameters import Categorical
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.space.values import number_of
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Predict = Callable[[Floats], Prediction]
"""Maps points f64[n, P] to their predicted values."""

_COLUMNS = 4  # of panels
_SLICE_POINTS, _CONTOUR_POINTS = 61, 33
_FEWEST = 4
"""Complete trials that fANOVA needs."""


class Slice(NamedTuple):
    """Predictions along one hyperparameter."""

    places: Floats
    """f64[n], as drawn: values, or positions of choices."""
    prediction: Prediction
    """Of n configurations."""


@dataclass(frozen=True)
class ObjectiveFigures:
    """Figures of a study with one objective by hyperparameter."""

    space: Space
    trials: Sequence[Trial]
    direction: str
    """"minimize" or "maximize"."""
    predict: Predict
    """The model's predictions; `ConfigError` or `DataError` if it has none."""

    @cached_property
    def slices(self) -> dict[str, Slice]:
        """Predictions along each hyperparameter; all others are those of the best trial in which it is active.

        By name; without hyperparameters that no complete trial has. Empty without predictions.
        """
        points = {name: self._line(best, name) for name in self.space if (best := self._best_with([name]))}
        points = {name: rows[self.space.layout.is_allowed(rows)] for name, rows in points.items()}
        if not points:
            return {}
        try:
            prediction = self.predict(np.vstack([*points.values()]))
        except (ConfigError, DataError):  # the method predicts no values, or the trials have one
            return {}
        ends = np.cumsum([len(rows) for rows in points.values()])[:-1]
        parts = zip(*(np.split(field, ends) for field in prediction), strict=True)
        return {
            name: Slice(self._places(name, map(self.space.params, rows)), Prediction(*part))
            for (name, rows), part in zip(points.items(), parts, strict=True)
        }

    def plot_slices(self) -> Figure:
        """Returns a figure of the values by hyperparameter, where it is active; later trials are darker."""
        values, n_columns = drawn_values(self.trials, self.direction), min(_COLUMNS, len(self.space))
        n_rows = -(-len(self.space) // n_columns)
        with new_figure((2.4 * n_columns, 2.1 * n_rows)) as figure:
            for i, name in enumerate(self.space):
                axes = figure.add_subplot(n_rows, n_columns, i + 1)
                self._set_scale(axes.xaxis, name)
                if name in self.slices:
                    _plot_prediction(axes, self.slices[name], isinstance(self.space[name], Categorical))
                active = [n for n, trial in enumerate(self._complete) if name in trial.params]
                places = self._places(name, (self._complete[n].params for n in active))
                numbers = [self._complete[n].number for n in active]
                shade: Any = {"c": numbers, "cmap": "Blues", "vmin": -len(self.trials) / 2}
                axes.scatter(places, values[active], s=16, zorder=3, **shade)
                axes.set_xlabel(name)
                clear_frame(axes)
        return figure

    def plot_contours(self) -> Figure | None:
        """Returns a figure of the prediction and its standard deviation over the two numbers that change it most.

        All other hyperparameters are those of the best trial. None without two numbers that are active together.
        """
        space, numbers = self.space, [name for name in self.slices if not isinstance(self.space[name], Categorical)]
        names = sorted(numbers, key=lambda name: -np.ptp(self.slices[name].prediction.mean))[:2]
        best = self._best_with(names) if len(names) == 2 else None
        if best is None:
            return None
        grid = np.linspace(0.0, 1.0, _CONTOUR_POINTS)
        points = np.tile(space.point(best.params), (len(grid) ** 2, 1))
        columns = [space.sequence.index(name) for name in names]
        points[:, columns] = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        prediction = self.predict(points)
        active = space.layout.active(points)
        mask = space.layout.is_allowed(points) & active[columns[0]] & active[columns[1]]
        x, y = (space.layout.parts[column].values(grid) for column in columns)
        configurations = [trial.params for trial in self._complete if {*names} <= trial.params.keys()]
        with new_figure((7.6, 3.2)) as figure:
            titles = ("predicted value", "standard deviation")
            for i, (title, field, colours) in enumerate(zip(titles, prediction, ("viridis", "Greys"), strict=True)):
                axes = figure.add_subplot(1, 2, i + 1)
                for axis, name in zip((axes.xaxis, axes.yaxis), names, strict=True):
                    self._set_scale(axis, name)
                values = np.ma.masked_array(field, ~mask).reshape(len(grid), len(grid))
                figure.colorbar(axes.contourf(x, y, values, levels=12, cmap=colours), ax=axes)
                at, above = (self._places(name, configurations) for name in names)
                axes.scatter(at, above, s=12, color="white", edgecolors="black", linewidths=0.7)
                axes.plot(*(self._places(name, [best.params])[0] for name in names), "*", ms=11, color=COLOURS[1])
                axes.set(xlabel=names[0], ylabel=names[1], title=title)
        return figure

    def importances(self) -> dict[str, float]:
        """Returns the share of the variance that each hyperparameter explains, by Optuna; empty where it has none.

        Of the values as they are drawn: one diverged trial would otherwise be all of the variance.
        """
        shares: dict[str, float] = {}
        if len(self._complete) < _FEWEST:
            return shares
        with contextlib.suppress(Exception):  # without Optuna or scikit-learn, or for values that they do not take
            import optuna

            from dre_jax.tuning.optuna.export import study_of_trials

            with optuna_logs_at("WARNING"):
                values = drawn_values(self._complete, self.direction)
                trials = [replace(trial, value=float(v)) for trial, v in zip(self._complete, values, strict=True)]
                study = study_of_trials(self.space, trials, [self.direction])
                evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
                shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
        return shares

    @cached_property
    def _complete(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.state == "complete"]

    def _best_with(self, names: Iterable[str]) -> Trial | None:
        """Returns the best feasible complete trial in which hyperparameters are active; None if there is none."""
        sign = 1.0 if self.direction == "maximize" else -1.0
        candidates = [trial for trial in self._complete if trial.is_feasible and {*names} <= {*trial.keys()}]
        return max(candidates, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def _line(self, best: Trial, name: str) -> Floats:
        """Returns points f64[n, P] whose configurations differ in one hyperparameter."""
        choices = getattr(self.space[name], "choices", None)
        coordinates = np.linspace(0.0, 1.0, _SLICE_POINTS) if choices is None else self.space.coordinates(name, choices)
        points = np.tile(self.space.point(best.params), (len(coordinates), 1))
        points[:, self.space.sequence.index(name)] = coordinates
        return points

    def _places(self, name: str, configurations: Iterable[Any]) -> Floats:
        return np.array([number_of(self.space[name], params[name]) for params in configurations], np.float64)

    def _set_scale(self, axis: Any, name: str) -> None:
        parameter = self.space[name]
        if isinstance(parameter, Categorical):
            axis.set_ticks(range(len(parameter.choices)), [str(one)[:12] for one in parameter.choices])
            return
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log" if parameter.log else "linear")
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")


def plot_importances(shares: Mapping[str, float]) -> Figure:
    """Returns a figure of `ObjectiveFigures.importances`."""
    with new_figure((6.4, 0.6 + 0.32 * len(shares))) as figure:
        axes = figure.add_subplot()
        axes.barh(list(shares)[::-1], list(shares.values())[::-1], color=COLOURS[0])
        axes.set_xlabel("share of the variance")
        clear_frame(axes)
    return figure


def _plot_prediction(axes: Axes, one: Slice, is_choice: bool) -> None:
    mean, error = one.prediction.mean, 2 * one.prediction.deviation
    if is_choice:
        axes.errorbar(one.places, mean, error, fmt="_", color=COLOURS[1], capsize=3)
    else:
        axes.plot(one.places, mean, color=COLOURS[1], linewidth=1.4)
        axes.fill_between(one.places, mean - error, mean + error, color=COLOURS[1], alpha=0.15, linewidth=0)
