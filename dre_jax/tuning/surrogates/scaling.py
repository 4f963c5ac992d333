"""How the best configuration moves with the features of tasks, as a surrogate has learned it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from dre_jax.data.features import FeatureColumn, FeatureSpace, Log
from dre_jax.data.scale import Scale
from dre_jax.space.encoding import NumberCode
from dre_jax.space.parameters import Categorical
from dre_jax.space.space import Space
from dre_jax.summaries import summary

_CLEAR = 2.0  # standard errors


class Slope(NamedTuple):
    """How the best value of a numeric hyperparameter moves with a feature, if other features stay the same.

    Example:
      >>> print(Slope("learning_rate", FeatureColumn("parameters"), -0.712, 0.1, True, True))
      learning_rate falls by 0.71 decades (±0.10) per decade of parameters
      >>> print(Slope("dropout", FeatureColumn("gpu", "a100"), 0.2, 0.05, False, False))
      dropout is higher by 0.200 (±0.050) where gpu is a100
    """

    hyperparameter: str
    feature: FeatureColumn
    """A numeric feature, or a choice of another one."""
    slope: float
    """Change of the hyperparameter, of its decimal logarithm if `is_log`; per unit of the feature, per decade of it if
    `feature_is_log`, or where the feature is the choice."""
    error: float
    """Standard error of the slope."""
    is_log: bool
    """Whether the hyperparameter is on a log scale."""
    feature_is_log: bool

    @property
    def is_clear(self) -> bool:
        """Whether the slope differs from 0 by more than two standard errors."""
        return abs(self.slope) > _CLEAR * self.error

    @property
    def numbers(self) -> tuple[str, str]:
        """The size of the slope and its error as texts of equally many digits."""
        size = self.error or abs(self.slope)
        if not 0 < size < math.inf:
            return f"{abs(self.slope):.2g}", f"{self.error:.2g}"
        digits = max(0, 1 - math.floor(math.log10(size)))
        form = f".{digits}f" if digits < 7 else ".2g"
        return format(abs(self.slope), form), format(self.error, form)

    def __str__(self) -> str:
        """The slope as a sentence."""
        size, error = self.numbers
        change = f"by {size}{' decades' if self.is_log else ''} (±{error})"
        if self.feature.choice is not None:
            side = "higher" if self.slope > 0 else "lower"
            return f"{self.hyperparameter} is {side} {change} where {self.feature.feature} is {self.feature.choice}"
        verb, unit = "rises" if self.slope > 0 else "falls", "decade" if self.feature_is_log else "unit"
        return f"{self.hyperparameter} {verb} {change} per {unit} of {self.feature.name}"


@dataclass(frozen=True, repr=False)
class Scaling:
    """How the best configuration moves with the features of tasks. `print(scaling)` prints a sentence for each slope.

    Example:
      >>> rows = FeatureColumn("rows")
      >>> print(Scaling((Slope("alpha", rows, -0.5, 0.1, True, True), Slope("tol", rows, 0.1, 0.1, True, True))))
      alpha falls by 0.50 decades (±0.10) per decade of rows
      no clear trend: tol with rows
    """

    slopes: tuple[Slope, ...]
    """Slopes of each numeric hyperparameter with each feature."""

    def __repr__(self) -> str:
        clear = [f"{slope.hyperparameter} with {slope.feature.name}" for slope in self.slopes if slope.is_clear]
        return summary(self, clear=clear, n_slopes=len(self.slopes))

    def __str__(self) -> str:
        """The lines."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Returns a sentence for each slope beyond two standard errors, and a line about all others."""
        lines = [str(slope) for slope in self.slopes if slope.is_clear]
        unclear: dict[str, list[str]] = {}
        for slope in self.slopes:
            if not slope.is_clear:
                unclear.setdefault(slope.hyperparameter, []).append(slope.feature.name)
        rest = "; ".join(f"{name} with {', '.join(features)}" for name, features in unclear.items())
        return [*lines, f"no clear trend: {rest}"] if rest else lines


def scaling_of(space: Space, features: FeatureSpace, slopes: npt.NDArray[Any], errors: npt.NDArray[Any]) -> Scaling:
    """Returns the slopes f[D, P] of columns with encoded features, and their errors, in the units of a user."""
    result = []
    for name, (i, scale) in numeric_columns(space).items():
        for p, column in enumerate(features.columns):
            slope, error = (span(scale) * float(array[i, p]) for array in (slopes, errors))
            is_log = isinstance(features.types[column.feature], Log)
            result.append(Slope(name, column, slope, error, scale.log, is_log))
    return Scaling(tuple(result))


def numeric_columns(space: Space) -> Mapping[str, tuple[int, Scale]]:
    """Returns the position and the scale of the column of each numeric hyperparameter of more than one value."""

    def entries() -> Iterator[tuple[str, tuple[int, Scale]]]:
        position = {column.name: i for i, column in enumerate(space.columns)}
        for name, parameter in space.items():
            code = space.code(name)
            if not isinstance(parameter, Categorical) and isinstance(code, NumberCode) and span(code.scale):
                yield name, (position[name], code.scale)

    return dict(entries())


def span(scale: Scale) -> float:
    """Returns the length of a scale, in decades of a logarithm."""
    low, high = float(scale.transform(scale.low)), float(scale.transform(scale.high))
    return (high - low) / math.log(10.0) if scale.log else high - low
