"""Rules that configurations of a space must satisfy, beyond bounds and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.errors import ConfigError
from dre_jax.search.layout import Combination, Order, SpaceLayout
from dre_jax.tuning.space.conditions import Conditions, Interval, conditions_of
from dre_jax.tuning.space.parameters import Categorical, Parameter
from dre_jax.tuning.space.values import number_of

Points = npt.NDArray[Any]


@dataclass(frozen=True)
class Forbidden:
    """Values that no configuration has together.

    Args:
      values: values by name, one or a sequence of them, of categoricals and whole numbers.

    Raises:
      ConfigError: for values that are no mapping, or empty.

    Example:
      >>> Forbidden({"penalty": "l1", "solver": ["lbfgs", "sag"]})
      Forbidden(values=(('penalty', ('l1',)), ('solver', ('lbfgs', 'sag'))))
    """

    values: Any

    def __post_init__(self) -> None:
        is_mapping = isinstance(self.values, Mapping)
        values: Conditions = conditions_of(self.values) if is_mapping else self.values  # type: ignore[assignment]
        if not isinstance(values, tuple) or any(isinstance(one, Interval) for _, one in values):
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

    def allows(self, params: Mapping[str, Any]) -> bool:
        """Returns whether a configuration satisfies the rule; it does without all the hyperparameters of the rule."""
        return not all(name in params and params[name] in values for name, values in self.values)


@dataclass(frozen=True)
class Less:
    """A number that is less than another one where both are active.

    Args:
      smaller: name of the one.
      larger: name of the other.
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

    def allows(self, params: Mapping[str, Any]) -> bool:
        """Returns whether a configuration satisfies the rule; it does without both numbers."""
        if self.smaller not in params or self.larger not in params:
            return True
        smaller, larger = params[self.smaller], params[self.larger]
        return bool(smaller <= larger if self.or_equal else smaller < larger)


Rule = Forbidden | Less


def check_rule(rule: object, parameters: Mapping[str, Parameter]) -> Rule:
    """Returns a rule of a space. Raises `ConfigError` for anything else."""
    if not isinstance(rule, (Forbidden, Less)):
        raise ConfigError(f"a rule must be Forbidden or Less, but got {rule!r}")
    for name in rule.names:
        if name not in parameters:
            subject = f"{name!r} of {str(rule)!r}"
            raise ConfigError(f"a rule must be about hyperparameters of the space, but {subject} is none")
    if isinstance(rule, Less) and any(isinstance(parameters[name], Categorical) for name in rule.names):
        raise ConfigError(f"a rule of order must be about two numbers, but got {str(rule)!r}")
    for name, values in rule.values if isinstance(rule, Forbidden) else ():
        parameter = parameters[name]
        if not isinstance(parameter, Categorical) and not parameter.step:
            raise ConfigError(f"a combination must have values that can be listed, but {name!r} is a real number")
        for value in values:
            if isinstance(parameter, Categorical) and value not in parameter.choices:
                raise ConfigError(f"a rule must have choices of {name!r}, but got {value!r}")
    return rule


def layout_rule(rule: Rule, parameters: Mapping[str, Parameter], index: Mapping[str, int]) -> Combination | Order:
    """Returns a rule about coordinates; hyperparameters have positions by name."""
    if isinstance(rule, Less):
        return Order(index[rule.smaller], index[rule.larger], rule.or_equal)
    values = ((name, map(partial(number_of, parameters[name]), values)) for name, values in rule.values)
    return Combination(tuple((index[name], tuple(map(float, numbers))) for name, numbers in values))


def allowed_points(layout: SpaceLayout, draw: Callable[[int], Points], n: int) -> Points:
    """Returns n points f[n, P] that the rules of a layout allow, the first of those drawn; repeated if there are fewer.

    Args:
      layout: the space.
      draw: function of a number of points, a power of two, that returns points f[number, P].
      n: a power of two.

    Raises:
      ConfigError: if no point of 64 n is allowed.
    """
    points = draw(n)
    if not layout.rules:
        return points
    valid_points = points[layout.is_allowed(points)]
    for factor in (4, 16, 64):
        if len(valid_points) >= n:
            break
        points = draw(factor * n)
        valid_points = points[layout.is_allowed(points)]
    if not len(valid_points):
        raise ConfigError(f"the rules of the space must allow some configurations, but allow none of {64 * n}")
    return valid_points[np.arange(n) % len(valid_points)]
