"""Rules on sums of hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.space.layout_rules import Linear
from dre_jax.space.parameters import Categorical, Parameter, Permutation
from dre_jax.space.scalars import is_finite, make_fields_plain

_TOLERANCE = 1e-6
"""Relative distance of possible sums from the bounds."""


@dataclass(frozen=True)
class Sum:
    """Bounds of a sum of numbers, to a millionth of its largest term or bound. Inactive numbers count as 0.

    Args:
      weights: names of the numbers, or a mapping of names to factors.
      at_least: lower bound.
      at_most: upper bound.
      equals: the sum, in place of bounds.

    Raises:
      ConfigError: for names that are not a list, a repeated name, a factor or bound that is not a number, or no bound.

    Example:
      >>> str(Sum(["a", "b"], at_most=1.0)), str(Sum({"a": 1, "b": 2.5, "c": 1}, equals=10))
      ('a + b <= 1.0', 'a + 2.5 b + c == 10')
    """

    weights: Any
    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None

    def __post_init__(self) -> None:
        make_fields_plain(self)
        terms = self.weights
        if isinstance(terms, (list, tuple)) and all(isinstance(item, str) for item in terms):
            terms = dict.fromkeys(terms, 1) if len(set(terms)) == len(terms) else {}
        try:
            weights = dict(() if isinstance(terms, str) else terms)
        except (TypeError, ValueError):
            weights = {}
        if not weights or not all(
            isinstance(name, str) and is_finite(factor) and factor for name, factor in weights.items()
        ):
            rule = "a sum must be of different names, or a mapping of names to factors other than 0"
            raise ConfigError(f"{rule}, but got {self.weights!r}")
        object.__setattr__(self, "weights", tuple(weights.items()))
        bounds = [bound for bound in (self.at_least, self.at_most, self.equals) if bound is not None]
        is_clear = len(bounds) == 1 or (bounds and self.equals is None)
        if not is_clear or not all(map(is_finite, bounds)) or bounds != sorted(bounds):
            rule = "a sum needs at_least, at_most or both, in order, or equals, as finite numbers"
            raise ConfigError(f"{rule}, but got {self!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        return tuple(name for name, _ in self.weights)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest sum."""
        low, high = (self.equals, self.equals) if self.equals is not None else (self.at_least, self.at_most)
        return (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))

    def __str__(self) -> str:
        text = " + ".join(name if weight == 1 else f"{weight!r} {name}" for name, weight in self.weights)
        if self.equals is not None:
            return f"{text} == {self.equals!r}"
        text = text if self.at_least is None else f"{self.at_least!r} <= {text}"
        return text if self.at_most is None else f"{text} <= {self.at_most!r}"

    def checked(self, parameters: Mapping[str, Parameter]) -> Sum:
        """Returns the rule. Raises `ConfigError` if a hyperparameter is not a number, or bounds allow no such sum."""
        check_numbers(self, parameters)
        (least, most), (low, high) = self._range(parameters), self.bounds
        if not max(least, low) <= min(most, high) + _TOLERANCE * max(abs(least), abs(most)):
            raise ConfigError(f"{str(self)!r} must be possible, but the sum is from {least!r} to {most!r}")
        return self

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Linear:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        weights = tuple((positions[name], float(weight)) for name, weight in self.weights)
        return Linear(weights, *self.bounds)

    def _range(self, parameters: Mapping[str, Parameter]) -> tuple[float, float]:
        """Returns the least and the greatest sum within the bounds of the numbers."""
        terms = []
        for name, weight in self.weights:
            parameter: Any = parameters[name]
            terms.append([weight * parameter.low, weight * parameter.high, *((0.0,) if parameter.when else ())])
        return math.fsum(map(min, terms)), math.fsum(map(max, terms))


def check_numbers(rule: Any, parameters: Mapping[str, Parameter]) -> None:
    """Raises `ConfigError` unless the hyperparameters of a rule are numbers."""
    if any(isinstance(parameters[name], (Categorical, Permutation)) for name in rule.names):
        raise ConfigError(f"an order or a sum must be of numbers, but got {str(rule)!r}")
