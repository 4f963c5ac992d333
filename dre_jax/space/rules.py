"""Rules that configurations of a space must satisfy, beyond bounds and conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.allowed import Allowed
from dre_jax.space.conditions import Conditions, Interval, conditions_of
from dre_jax.space.counts import Count
from dre_jax.space.formulas import Formula
from dre_jax.space.layout_rules import Combination, Linear
from dre_jax.space.parameters import Categorical, Parameter, Permutation
from dre_jax.space.sums import Sum, check_numbers
from dre_jax.space.values import checked_value, number_of


@dataclass(frozen=True)
class Forbidden:
    """Values that no configuration has together.

    Args:
      values: a value or a sequence of values by name, of categoricals and whole numbers.

    Raises:
      ConfigError: for values that are not a mapping, or are empty.

    Example:
      >>> Forbidden({"penalty": "l1", "solver": ["lbfgs", "sag"]})
      Forbidden(values=(('penalty', ('l1',)), ('solver', ('lbfgs', 'sag'))))
    """

    values: Any

    def __post_init__(self) -> None:
        is_mapping = isinstance(self.values, Mapping)
        values: Conditions = conditions_of(self.values) if is_mapping else self.values  # type: ignore[assignment]
        if not isinstance(values, tuple) or any(isinstance(value, Interval) for _, value in values):
            raise ConfigError(f"a forbidden combination must map names to values, but got {self.values!r}")
        if not values:
            raise ConfigError("a forbidden combination must have at least one value, but got none")
        object.__setattr__(self, "values", values)

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        return tuple(name for name, _ in self.values)

    def __str__(self) -> str:
        return "not " + " with ".join(f"{name} in {list(values)!r}" for name, values in self.values)

    def checked(self, parameters: Mapping[str, Parameter]) -> Forbidden:
        """Returns the rule. Raises `ConfigError` for values that a space does not have."""
        for name, values in self.values:
            parameter = parameters[name]
            if isinstance(parameter, Permutation) or (not isinstance(parameter, Categorical) and not parameter.step):
                kind = "a permutation" if isinstance(parameter, Permutation) else "a real number"
                raise ConfigError(f"a combination must have values that can be listed, but {name!r} is {kind}")
            for value in values:
                try:
                    checked_value(name, parameter, value)
                except DataError as error:
                    raise ConfigError(f"a combination must be of the space, but {error}") from None
        return self

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Combination:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        values = ((name, map(partial(number_of, parameters[name]), values)) for name, values in self.values)
        return Combination(tuple((positions[name], tuple(map(float, numbers))) for name, numbers in values))


@dataclass(frozen=True)
class Less:
    """A number that is less than another one where both are active.

    Args:
      smaller: name of the smaller number.
      larger: name of the larger number.
      or_equal: whether both may be equal.

    Example:
      >>> str(Less("min_size", "max_size"))
      'min_size < max_size'
    """

    smaller: str
    larger: str
    or_equal: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        return self.smaller, self.larger

    def __str__(self) -> str:
        return f"{self.smaller} {'<=' if self.or_equal else '<'} {self.larger}"

    def checked(self, parameters: Mapping[str, Parameter]) -> Less:
        """Returns the rule. Raises `ConfigError` if a hyperparameter is not a number."""
        check_numbers(self, parameters)
        return self

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Linear:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        weights = (positions[self.smaller], 1.0), (positions[self.larger], -1.0)
        return Linear(weights, -math.inf, 0.0, is_order=True, strict=not self.or_equal)


Rule = Forbidden | Less | Sum | Count | Formula | Allowed


def check_rule(rule: object, parameters: Mapping[str, Parameter]) -> Rule:
    """Returns a rule of a space, with values of its types. Raises `ConfigError` for anything else."""
    if not isinstance(rule, Rule):
        raise ConfigError(f"a rule must be Forbidden, Less, Sum, Count, Formula or Allowed, but got {rule!r}")
    for name in rule.names:
        if name not in parameters:
            subject = f"{name!r} of {str(rule)!r}"
            raise ConfigError(f"a rule must be about hyperparameters of the space, but {subject} is none")
    return rule.checked(parameters)
