"""HPO-B's continuous benchmark: XGBoost surrogates of the tasks, searched in [0, 1]^D (extra `hpob`).

There are two ways of counting. `hpob` equals HPO-B's handler to the last bit: it never counts the last evaluation, and
credits a run with the surrogate's maximum one trial late. `fixed` counts every evaluation when it is made. The design's
responses are those of the table, all others the surrogate's; both are scaled with the range that HPO-B's
`summary-stats.json` gives and clipped to [0, 1].
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.checks import is_number
from dre_jax.data.files import read_json
from dre_jax.errors import DataError, MethodError, import_extra
from dre_jax.search.host import HostMethod

Ranges = Mapping[str, Mapping[str, float]]
"""Surrogate's name -> `y_min` and `y_max`."""

COUNTINGS = ("hpob", "fixed")
"""Ways of counting evaluations."""

XGBOOST = ("xgboost", "xgboost", "hpob")
"""Module, package and extra of the surrogates' library."""

_STATS = "summary-stats.json"
# A method that computes in float32 may leave the box by a rounding error.
_TOLERANCE = 1e-6


def read_ranges(folder: str | os.PathLike[str]) -> Ranges:
    """The ranges of all surrogates of a folder. Raises `DataError` where the file is missing or malformed."""
    path = Path(folder) / _STATS
    ranges = read_json(path)
    if not isinstance(ranges, dict):
        raise DataError(f"{path} must hold {{surrogate: {{y_min, y_max}}}}, but holds {type(ranges).__name__}")
    return ranges


class Objective(NamedTuple):
    """One task's objective."""

    name: str
    booster: Any
    y_min: float
    y_max: float

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        space: str,
        dataset: str,
        *,
        n_columns: int,
        ranges: Ranges,
    ) -> Objective:
        """The surrogate of a task whose table has D columns; `ranges` are those of `read_ranges`.

        Raises `MissingExtraError` without xgboost, and `DataError` where the model or its range is missing or
        malformed, or it has other columns than the table.
        """
        name = surrogate_name(space, dataset)
        low, high = _range(folder, name, ranges)
        xgboost = import_extra(*XGBOOST)
        path = Path(folder) / f"{name}.json"
        if not path.is_file():
            raise DataError(f"a surrogate must be a file, but {path} is none")
        booster = xgboost.Booster()
        try:
            booster.load_model(path)
        except xgboost.core.XGBoostError as error:
            reason = str(error).strip().splitlines()
            raise DataError(f"{path} is no XGBoost model: {reason[0] if reason else 'unknown'}") from error
        if booster.num_features() != n_columns:
            columns = f"{booster.num_features()}, the table {n_columns}"
            raise DataError(f"{path} must have as many columns as the table, but has {columns}")
        booster.set_param({"nthread": 1})  # a single row is too little work for threads
        return cls(name, booster, low, high)

    def predict(self, x: np.ndarray) -> float:
        """The response at a point f64[D], on the table's scale."""
        return float(self.booster.predict(import_extra(*XGBOOST).DMatrix(x.reshape(1, -1), nthread=1))[0])

    def scale(self, y: np.ndarray) -> np.ndarray:
        """Responses on the scale [0, 1]; 0.5 throughout where the range is empty."""
        if not self.y_max > self.y_min:
            return np.full(y.shape, 0.5)
        return np.clip((y - self.y_min) / (self.y_max - self.y_min), 0, 1)


def run_continuous(
    method: HostMethod,
    surrogate: Objective,
    x: np.ndarray,
    y: np.ndarray,
    n_trials: int,
    *,
    counting: str,
    name: str | None = None,
) -> np.ndarray:
    """One run of T trials, ended once the surrogate reaches its task's maximum; returns the incumbents f64[T + 1].

    The method's `observe_and_suggest(x_obs, y_obs)` returns a vector of D numbers in [0, 1], or [1, D]. The design x
    f64[n0, D] has the responses y f64[n0] of the table. Messages name the method, by default its class.

    Raises `MethodError` for an answer of another shape, not finite, or outside the box, and `ConfigError` for a
    counting that is not one of `COUNTINGS`.
    """
    one_of("counting", counting, COUNTINGS)
    name = name or type(method).__name__
    x = np.array(x, np.float64)
    y = np.array(y, np.float64).reshape(-1, 1)
    trace = [float(surrogate.scale(y).max())]
    is_at_maximum = not surrogate.y_max > surrogate.y_min
    while len(trace) <= n_trials and not is_at_maximum:
        point = _point(method.observe_and_suggest(x.copy(), surrogate.scale(y)), x.shape[1], name)
        x = np.append(x, point[None], axis=0)
        y = np.append(y, [[surrogate.predict(point)]], axis=0)
        trace.append(float(surrogate.scale(y).max()))
        is_at_maximum = bool(y.max() >= surrogate.y_max)
    if counting == "hpob" and len(trace) > 1:
        trace[-1] = trace[-2]
    # Nothing better than the maximum can follow; where the range is empty, nothing at all.
    end = trace[-1] if not surrogate.y_max > surrogate.y_min else 1.0
    return np.array(trace + [end] * (n_trials + 1 - len(trace)))


def surrogate_name(space: str, dataset: str) -> str:
    """HPO-B's name of a task's surrogate."""
    return f"surrogate-{space}-{dataset}"


def _range(folder: str | os.PathLike[str], name: str, ranges: Ranges) -> tuple[float, float]:
    path = Path(folder) / _STATS
    limits = ranges.get(name)
    if not isinstance(limits, dict) or not all(is_number(limits.get(key)) for key in ("y_min", "y_max")):
        raise DataError(f"{path} must give y_min and y_max of {name}, but has {limits!r}")
    return float(limits["y_min"]), float(limits["y_max"])


def _point(answer: Any, n_columns: int, name: str) -> np.ndarray:
    rule = f"method {name}: observe_and_suggest must return a vector of {n_columns} numbers in [0, 1]"
    try:
        point = np.asarray(answer, np.float64)
    except (TypeError, ValueError):
        raise MethodError(f"{rule}, but returned {type(answer).__name__}") from None
    if point.shape not in ((n_columns,), (1, n_columns)):
        raise MethodError(f"{rule}, but returned shape {point.shape}")
    point = point.reshape(-1)
    inside = (point >= -_TOLERANCE) & (point <= 1 + _TOLERANCE)  # false for NaN
    if not inside.all():
        column = int(np.argmin(inside))
        raise MethodError(f"{rule}, but returned {point[column]} in column {column}")
    return point
