"""Figures by hyperparameter: values, what the study's model predicts around the best trial, and importance."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.report.style import COLOURS, draw
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


def predicted_slices(space: Space, trials: Sequence[Trial], direction: str, predict: Predict) -> dict[str, Slice]:
    """Returns predictions along each hyperparameter; all others are those of the best trial in which it is active.

    Args:
      space: the search space.
      trials: of the study.
      direction: "minimize" or "maximize".
      predict: the model's predictions.

    Returns:
      By name; without hyperparameters that no complete trial has.
    """
    points = {name: _line(space, best, name) for name in space if (best := _best_with([name], trials, direction))}
    points = {name: rows[space.layout.allowed(rows)] for name, rows in points.items()}
    if not points:
        return {}
    prediction = predict(np.vstack(list(points.values())))
    ends = np.cumsum([len(rows) for rows in points.values()])[:-1]
    parts = zip(*(np.split(field, ends) for field in prediction), strict=True)
    return {
        name: Slice(_places(space, name, map(space.params, rows)), Prediction(*part))
        for (name, rows), part in zip(points.items(), parts, strict=True)
    }


def plot_slices(space: Space, trials: Sequence[Trial], direction: str, slices: dict[str, Slice]) -> Figure:
    """Returns a figure of the values by hyperparameter, where it is active; later trials are darker.

    Args:
      space: the search space.
      trials: of the study.
      direction: "minimize" or "maximize".
      slices: predictions by hyperparameter; those without are drawn without.
    """
    complete = [trial for trial in trials if trial.state == "complete"]
    values, n_columns = drawn_values(trials, direction), min(_COLUMNS, len(space))
    n_rows = -(-len(space) // n_columns)

    def paint(figure: Figure) -> None:
        for i, name in enumerate(space):
            axes = figure.add_subplot(n_rows, n_columns, i + 1)
            _set_scale(axes.xaxis, space, name)
            if name in slices:
                _plot_prediction(axes, slices[name], isinstance(space[name], Categorical))
            active = [n for n, trial in enumerate(complete) if name in trial.params]
            places = _places(space, name, (complete[n].params for n in active))
            numbers = [complete[n].number for n in active]
            axes.scatter(places, values[active], s=16, c=numbers, cmap="Blues", vmin=-len(trials) / 2, zorder=3)
            axes.set_xlabel(name)
            clear_frame(axes)

    return draw((2.4 * n_columns, 2.1 * n_rows), paint)


def plot_contours(
    space: Space, trials: Sequence[Trial], direction: str, slices: dict[str, Slice], predict: Predict
) -> Figure | None:
    """Returns a figure of the prediction and its standard deviation over the two numbers that change it most.

    All other hyperparameters are those of the best trial. None without two numbers that are active together.

    Args:
      space: the search space.
      trials: of the study.
      direction: "minimize" or "maximize".
      slices: what `predicted_slices` returned.
      predict: the model's predictions.
    """
    effect = {n: np.ptp(one.prediction.mean) for n, one in slices.items() if not isinstance(space[n], Categorical)}
    names = sorted(effect, key=lambda name: -effect[name])[:2]
    best = _best_with(names, trials, direction) if len(names) == 2 else None
    if best is None:
        return None
    grid = np.linspace(0.0, 1.0, _CONTOUR_POINTS)
    points = np.tile(space.point(best.params), (len(grid) ** 2, 1))
    columns = [space.sequence.index(name) for name in names]
    points[:, columns] = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    prediction = predict(points)
    active = space.layout.active(points)
    shown = space.layout.allowed(points) & active[columns[0]] & active[columns[1]]
    x, y = (space.layout.parts[column].values(grid) for column in columns)
    configurations = [trial.params for trial in trials if trial.state == "complete" and {*names} <= trial.params.keys()]

    def paint(figure: Figure) -> None:
        titles = ("predicted value", "standard deviation")
        for i, (title, field, colours) in enumerate(zip(titles, prediction, ("viridis", "Greys"), strict=True)):
            axes = figure.add_subplot(1, 2, i + 1)
            for axis, name in zip((axes.xaxis, axes.yaxis), names, strict=True):
                _set_scale(axis, space, name)
            filled = np.ma.masked_array(field, ~shown).reshape(len(grid), len(grid))
            figure.colorbar(axes.contourf(x, y, filled, levels=12, cmap=colours), ax=axes)
            at, above = (_places(space, name, configurations) for name in names)
            axes.scatter(at, above, s=12, color="white", edgecolors="black", linewidths=0.7)
            axes.plot(*([_places(space, name, [best.params])[0]] for name in names), "*", ms=11, color=COLOURS[1])
            axes.set(xlabel=names[0], ylabel=names[1], title=title)

    return draw((7.6, 3.2), paint)


def importances(space: Space, trials: Sequence[Trial], direction: str) -> dict[str, float]:
    """Returns the share of the variance that each hyperparameter explains, by Optuna; empty where it has none."""
    complete = [trial for trial in trials if trial.state == "complete"]
    shares: dict[str, float] = {}
    if len(complete) < _FEWEST:
        return shares
    with contextlib.suppress(Exception):  # without Optuna or scikit-learn, or for values that they do not take
        import optuna

        from dre_jax.tuning.optuna.export import study_of_trials

        with optuna_logs_at("WARNING"):
            study = study_of_trials(space, complete, [direction])
            evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
            shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return shares


def plot_importances(shares: Mapping[str, float]) -> Figure:
    """Returns a figure of `importances`."""

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.barh(list(shares)[::-1], list(shares.values())[::-1], color=COLOURS[0])
        axes.set_xlabel("share of the variance")
        clear_frame(axes)

    return draw((6.4, 0.6 + 0.32 * len(shares)), paint)


def _best_with(names: Iterable[str], trials: Sequence[Trial], direction: str) -> Trial | None:
    """Returns the best feasible complete trial in which hyperparameters are active; None if there is none."""
    sign = 1.0 if direction == "maximize" else -1.0
    candidates = [one for one in trials if one.state == "complete" and one.is_feasible and {*names} <= {*one.keys()}]
    return max(candidates, key=lambda one: sign * (one.value or 0.0), default=None)


def _line(space: Space, best: Trial, name: str) -> Floats:
    """Returns points f64[n, P] whose configurations differ in one hyperparameter."""
    choices = getattr(space[name], "choices", None)
    coordinates = np.linspace(0.0, 1.0, _SLICE_POINTS) if choices is None else space.coordinates(name, choices)
    points = np.tile(space.point(best.params), (len(coordinates), 1))
    points[:, space.sequence.index(name)] = coordinates
    return points


def _places(space: Space, name: str, configurations: Iterable[Any]) -> Floats:
    return np.array([number_of(space[name], params[name]) for params in configurations], np.float64)


def _set_scale(axis: Any, space: Space, name: str) -> None:
    parameter = space[name]
    if isinstance(parameter, Categorical):
        axis.set_ticks(range(len(parameter.choices)), [str(one)[:12] for one in parameter.choices])
        return
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log" if parameter.log else "linear")
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def _plot_prediction(axes: Axes, one: Slice, is_choice: bool) -> None:
    mean, error = one.prediction.mean, 2 * one.prediction.deviation
    if is_choice:
        axes.errorbar(one.places, mean, error, fmt="_", color=COLOURS[1], capsize=3)
    else:
        axes.plot(one.places, mean, color=COLOURS[1], linewidth=1.4)
        axes.fill_between(one.places, mean - error, mean + error, color=COLOURS[1], alpha=0.15, linewidth=0)
