"""Features of tasks: what is known of a task before its first trial, as numbers.

A feature of a model's training is its number of parameters or tokens, of a data set its number of rows, of an
experiment its temperature. `FeatureSpace.encode` makes the row of numbers that methods read (`Task.features`).
"""

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError, DataWarning

FeatureValue = str | bool | int | float | None
"""A value of a feature; None if it is unknown."""
_LOG_RATIO = 10.0  # of the largest to the smallest number, above which a feature is on a log scale by default
_LITERALS = ("true", "false")


@dataclass(frozen=True)
class Log:
    """A positive number whose ratios matter, such as a number of parameters: encoded by its decimal logarithm."""


@dataclass(frozen=True)
class Linear:
    """A number whose differences matter, such as a temperature: encoded as it is."""


@dataclass(frozen=True)
class Choice:
    """One of several names, such as the kind of a GPU: encoded by a column for each, 1 for the task's and 0 for others.

    Args:
      choices: names; by default those of the past tasks. Numbers and booleans become texts.

    Example:
      >>> Choice(["a100", "h100", 2]).choices
      ('a100', 'h100', '2')
    """

    choices: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not isinstance(self.choices, Iterable):
            raise ConfigError(f"the choices of a feature must be a list, but got {show(self.choices)}")
        object.__setattr__(self, "choices", tuple(dict.fromkeys(map(choice_text, self.choices))))


FeatureType = Log | Linear | Choice
_KINDS: dict[str, type[FeatureType]] = {"log": Log, "linear": Linear, "choice": Choice}


class FeatureColumn(NamedTuple):
    """A column of encoded features."""

    feature: str
    choice: str | None = None
    """The choice that the column is 1 for; None of a number."""

    @property
    def name(self) -> str:
        """The feature, with the choice."""
        return self.feature if self.choice is None else f"{self.feature}={self.choice}"


@dataclass(frozen=True)
class FeatureSpace:
    """The features that past tasks have, in their order, with their ranges.

    Example:
      >>> space = FeatureSpace({"parameters": Log(), "gpu": Choice(["a100", "h100"])}, {"parameters": (1e6, 1e9)})
      >>> space.encode({"parameters": 1e8, "gpu": "h100"}).tolist(), space.encode({"gpu": "h100"}).tolist()
      ([8.0, 0.0, 1.0], [nan, 0.0, 1.0])
      >>> print(space)
      parameters (log, 1e6 to 1e9), gpu (one of a100, h100)
      >>> space.extrapolations({"parameters": 7e9})
      ['parameters=7e9 lies beyond the past tasks, 1e6 to 1e9: extrapolated']
    """

    types: Mapping[str, FeatureType]
    """Descriptions by name."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The smallest and the largest number of the past tasks, by name."""

    def __str__(self) -> str:
        """The names with their scales and ranges."""
        return ", ".join(f"{name} ({self._words(name)})" for name in self.types)

    def _words(self, name: str) -> str:
        kind = self.types[name]
        if isinstance(kind, Choice):
            return "one of " + ", ".join(kind.choices)
        low, high = map(show_number, self.ranges[name])
        return f"{'log, ' if isinstance(kind, Log) else ''}{low} to {high}"

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """The P columns of an encoded row."""
        return tuple(column for name, kind in self.types.items() for column in _columns(name, kind))

    def check_names(self, names: Iterable[str]) -> None:
        """Raises `DataError` for a name of no feature."""
        if unknown := next((name for name in names if name not in self.types), None):
            raise DataError(f"features of the task are of {', '.join(self.types)}, but got {unknown!r}")

    def encode(self, features: Mapping[str, Any]) -> npt.NDArray[np.float32]:
        """Returns the features of a task as f32[P], NaN where they are missing, None or NaN.

        Raises:
          DataError: for an unknown name, and a number that is text, infinite, or not positive on a log scale.

        Warns:
          DataWarning: for a choice that no past task has; its columns are NaN.
        """
        if not isinstance(features, Mapping):
            raise DataError(f"features must map names to values, but got {show(features)}")
        self.check_names(features)
        parts = [_encode(name, kind, features.get(name)) for name, kind in self.types.items()]
        return np.array([number for part in parts for number in part], np.float32)

    def decode(self, row: npt.ArrayLike) -> dict[str, FeatureValue]:
        """Returns the features of a row f[P], without unknown ones; numbers to five digits, as f32 holds logarithms.

        Example:
          >>> space = FeatureSpace({"tokens": Log(), "gpu": Choice(["a100", "h100"])})
          >>> space.decode(space.encode({"tokens": 1.4e11, "gpu": "h100"}))
          {'tokens': 140000000000.0, 'gpu': 'h100'}
        """
        values = np.asarray(row, np.float64)
        numbers = {column: float(value) for column, value in zip(self.columns, values, strict=True)}
        features: dict[str, FeatureValue] = {}
        for column, number in numbers.items():
            if column.choice is None and not math.isnan(number):
                features[column.feature] = float(f"{from_scale(self.types[column.feature], number):.5g}")
            elif column.choice is not None and number == 1.0:
                features[column.feature] = column.choice
        return features

    def extrapolations(self, features: Mapping[str, Any]) -> list[str]:
        """Returns a line for each number that lies outside of the range of the past tasks."""
        lines = []
        for name, (low, high) in self.ranges.items():
            number = number_of(features.get(name))
            if number is not None and not low <= number <= high:
                beyond = f"{name}={show_number(number)} lies beyond the past tasks"
                lines.append(f"{beyond}, {show_number(low)} to {show_number(high)}: extrapolated")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Returns the space as JSON."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        content: dict[str, Any] = {name: {"type": kinds[type(kind)]} for name, kind in self.types.items()}
        for name, kind in self.types.items():
            content[name] |= {"choices": list(kind.choices)} if isinstance(kind, Choice) else {}
            content[name] |= {"range": list(self.ranges[name])} if name in self.ranges else {}
        return content

    @classmethod
    def from_json(cls, content: Any) -> "FeatureSpace":
        """Returns the space in the content of `to_json`. Raises `ConfigError` for anything else.

        Example:
          >>> space = FeatureSpace({"rows": Log()}, {"rows": (10.0, 1e4)})
          >>> FeatureSpace.from_json(space.to_json()) == space
          True
        """
        try:
            types, ranges = dict[str, FeatureType](), dict[str, tuple[float, float]]()
            for name, entry in content.items():
                kind = _KINDS[entry["type"]]
                types[str(name)] = Choice(entry["choices"]) if kind is Choice else kind()
                if "range" in entry:
                    low, high = map(float, entry["range"])
                    ranges[str(name)] = low, high
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"features must be as they were written, but: {error!r}") from error
        return cls(types, ranges)


def _columns(name: str, kind: FeatureType) -> list[FeatureColumn]:
    return (
        [FeatureColumn(name, choice) for choice in kind.choices] if isinstance(kind, Choice) else [FeatureColumn(name)]
    )


def _encode(name: str, kind: FeatureType, value: Any) -> list[float]:
    """Returns the columns of a value."""
    if isinstance(kind, Choice):
        unknown = [math.nan] * len(kind.choices)
        if is_unknown(value):
            return unknown
        if (text := choice_text(value)) in kind.choices:
            return [float(choice == text) for choice in kind.choices]
        rule = f"{name} of the past tasks is one of {', '.join(kind.choices)}"
        warnings.warn(f"{rule}: {show(value)} counts as unknown", DataWarning, stacklevel=2)
        return unknown
    number = checked_number(name, kind, value)
    return [math.nan if number is None else to_scale(kind, number)]


def to_scale(kind: FeatureType, number: float) -> float:
    """Returns the number on the scale of a feature."""
    return math.log10(number) if isinstance(kind, Log) else number


def from_scale(kind: FeatureType, number: float) -> float:
    """Returns the number at a place of the scale of a feature."""
    return 10.0**number if isinstance(kind, Log) else number


def is_unknown(value: Any) -> bool:
    """Returns whether a value says that a feature is unknown: None, NaN, an empty text, or the same of pandas."""
    value = _plain(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return not value.strip() if isinstance(value, str) else isinstance(value, float) and math.isnan(value)


def number_of(value: Any) -> float | None:
    """Returns the number that a value or a text is; None if it is unknown, a boolean, or something else.

    Example:
      >>> number_of("1e9"), number_of(3), number_of("a100"), number_of(True)
      (1000000000.0, 3.0, None, None)
    """
    value = _plain(value)
    if isinstance(value, bool) or is_unknown(value):
        return None
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return None


def checked_number(name: str, kind: FeatureType, value: Any) -> float | None:
    """Returns the number of a feature, None if it is unknown. Raises `DataError` as `FeatureSpace.encode`."""
    if is_unknown(value):
        return None
    number = number_of(value)
    if number is None or not math.isfinite(number):
        raise DataError(f"{name} must be a finite number, but got {show(value)}")
    if isinstance(kind, Log) and number <= 0:
        raise DataError(f"{name} must be positive on a log scale, but got {show(value)}")
    return number


def choice_text(value: Any) -> str:
    """Returns a choice as text: booleans as in JSON, and numbers in their shortest form.

    Example:
      >>> choice_text(True), choice_text("TRUE"), choice_text(2.0), choice_text(" a100 ")
      ('true', 'true', '2', 'a100')
    """
    value = _plain(value)
    if isinstance(value, bool):
        return json.dumps(value)
    text = value.strip() if isinstance(value, str) else show_number(value) if isinstance(value, float) else str(value)
    return text.lower() if text.lower() in _LITERALS else text


def plain_features(features: Any) -> dict[str, FeatureValue]:
    """Returns the features of a task as values of Python that JSON has; None for unknown ones.

    Raises `DataError` for anything but a mapping of names to texts, booleans and finite numbers.

    Example:
      >>> plain_features({"rows": np.int64(3), "gpu": "a100", "tokens": float("nan")})
      {'rows': 3, 'gpu': 'a100', 'tokens': None}
    """
    if not isinstance(features, Mapping):
        raise DataError(f"features must map names to values, but got {show(features)}")
    values = {str(name): None if is_unknown(value) else _plain(value) for name, value in features.items()}
    for name, value in values.items():
        is_valid = value is None or isinstance(value, (str, bool, int, float))
        if not is_valid or (isinstance(value, float) and not math.isfinite(value)):
            raise DataError(f"{name} must be a finite number, text or a boolean, but got {show(value)}")
    return values


def infer_type(name: str, values: Mapping[str, Any]) -> FeatureType:
    """Returns the description of a feature from its known values by task.

    Text and booleans are a `Choice`, numbers are `Log` if all are positive and the largest is more than ten times the
    smallest, and `Linear` otherwise. Text that reads as a number is one.

    Raises `DataError` if some values are numbers and others are not.

    Example:
      >>> infer_type("rows", {"a": 100, "b": 5000}), infer_type("gpu", {"a": "h100"}), infer_type("heat", {"a": -5})
      (Log(), Choice(choices=()), Linear())
    """
    numbers = {task: number_of(value) for task, value in values.items()}
    without_number = [task for task, number in numbers.items() if number is None]
    if len(without_number) == len(numbers):
        return Choice()
    if without_number:
        task = next(task for task, number in numbers.items() if number is not None)
        kinds = (
            f"{show(values[task])} of task {task!r} and {show(values[without_number[0]])} of task {without_number[0]!r}"
        )
        remedy = f"feature_types={{{name!r}: Choice()}} reads it as names"
        raise DataError(f"{name} must be numbers of all tasks or of none, but is {kinds}: {remedy}")
    known = [number for number in numbers.values() if number is not None]
    return Log() if min(known) > 0 and max(known) > _LOG_RATIO * min(known) else Linear()


def show_number(number: float) -> str:
    """Returns a number for a message, in its shortest form to six digits.

    Example:
      >>> show_number(7e9), show_number(0.00002), show_number(1500), show_number(123456789)
      ('7e9', '2e-5', '1500', '1.23457e8')
    """
    mantissa, exponent, power = f"{number:.6g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


def _plain(value: Any) -> Any:
    """Returns the Python value of a scalar of NumPy, JAX or PyTorch, and any other value as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
