"""What a study expects of configurations: the mean and the standard deviation of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.tuning.engine import Engine
from dre_jax.tuning.engine_config import Observation
from dre_jax.tuning.trial import Trial

Floats = npt.NDArray[np.float64]


class Prediction(NamedTuple):
    """Predicted values of n configurations, without the noise of a trial."""

    mean: Floats
    """f64[n]"""
    deviation: Floats
    """f64[n], standard deviations: what the model does not know."""


def predict_values(engine: Engine, trials: Sequence[Trial], direction: str, points: Floats) -> Prediction:
    """Predicts values from the trials that have one.

    Args:
      engine: of one objective.
      trials: with values of the objective.
      direction: "minimize" or "maximize".
      points: f64[n, P], of the unit cube, see `Space.point`.

    Raises:
      ConfigError: for a method that does not predict values.
      DataError: for trials with fewer than two different values.
    """
    sign = 1.0 if direction == "maximize" else -1.0
    observed = [
        Observation(trial._params, sign * trial.value, (trial.stderr or 0.0) if engine.uses_standard_errors else 0.0)
        for trial in trials
        if trial.state in ("complete", "stopped") and trial.value is not None
    ]
    mean, deviation = engine.predict(observed, points)
    return Prediction(sign * mean, deviation)
