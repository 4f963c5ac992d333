"""Learning curves of the trials of a study: which running trials to stop, and the forecasts of stopped ones."""

from collections.abc import Iterable
from typing import Any

from dre_jax.errors import DataError
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.tuning.curves.forecast import CurveModel, Forecast
from dre_jax.tuning.past.curves import Curve, PastCurves, as_curve
from dre_jax.tuning.trials.trial import Trial, objective_value


class StudyCurves:
    """Forecasts of running trials; the model is fitted again after each trial that completes."""

    def __init__(self, past: PastCurves | None, error: float) -> None:
        """Creates forecasts without trials; see `CurveModel`. Raises `DataError` for invalid past curves."""
        if past is not None and not isinstance(past, PastCurves):
            raise DataError(f"past_curves must be PastCurves or None, but got {past!r}")
        self.past, self._error = past, error
        self._latest_fit: tuple[list[Curve], CurveModel] = [], CurveModel([])
        self.stopping_forecasts: dict[int, Forecast] = {}
        """Forecasts of running trials that are to stop, by number."""

    def should_stop(self, trial: Trial, trials: Iterable[Trial], sign: float) -> bool:
        """Returns whether a running trial is to stop; ``sign`` is -1 if values are minimised."""
        ended = [other for other in trials if other.state in ("complete", "stopped") and other._reports]
        finished_curves = [as_curve(other._reports, sign, other.value) for other in ended if other.state == "complete"]
        ended_curves = [as_curve(other._reports, sign) for other in ended]
        forecast = self.forecast(finished_curves, as_curve(trial._reports, sign), trial.number + 1, ended_curves)
        if forecast is None or not forecast.stops:
            return False
        self.stopping_forecasts[trial.number] = forecast
        return True

    @with_default_float_errors
    def forecast(
        self, finished_curves: list[Curve], curve: Curve, n_trials: int, ended_curves: list[Curve]
    ) -> Forecast | None:
        """Returns the forecast of a curve, None without enough reports or curves; arguments as in `CurveModel`."""
        curves, model = self._latest_fit
        if curves != finished_curves:
            model = CurveModel(finished_curves, self.past, error=self._error)
            self._latest_fit = finished_curves, model
        return model.forecast(curve, n_trials, ended_curves)


def checked_report(value: Any, step: Any) -> tuple[float, float]:
    """Returns the step and the value of a report as floats. Raises `DataError`."""
    number = objective_value(step, "the step of a report")
    if not 0 <= number < float("inf"):
        raise DataError(f"the step of a report must be a finite number from 0, but got {step!r}")
    return number, objective_value(value, "the value of a report")
