"""Rules that configurations of a space must satisfy, beyond bounds and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dre_jax.errors import ConfigError
from dre_jax.search.layout import Combination, Number, Order, SpaceLayout
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


def allowed_points(layout: SpaceLayout, draw: Callable[[int], Points], n: int, fixed: Points | None = None) -> Points:
    """Returns n points f[n, P] that the rules of a layout allow, the first of those drawn; repeated if there are fewer.

    If few points are allowed, the others are moved to where numbers are in order, see `move_in_order`.

    Args:
      layout: the space.
      draw: function of a number of points, a power of two, that returns points f[number, P].
      n: a power of two.
      fixed: f[P], coordinates that all points have, NaN for the others; None without any.

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
    if len(valid_points) < n:
        moved = move_in_order(layout, points, fixed)
        valid_points = np.vstack([valid_points, moved[layout.is_allowed(moved)]])
    if not len(valid_points):
        raise ConfigError(f"the rules of the space must allow some configurations, but allow none of {64 * n}")
    return valid_points[np.arange(n) % len(valid_points)]


def move_in_order(layout: SpaceLayout, points: Points, fixed: Points | None = None) -> Points:
    """Returns points f[n, P] whose numbers are in the order that the rules demand, where that is possible.

    Each number is drawn above those that must be smaller, and so that those that must be larger have room. In a chain
    of real numbers with equal bounds, uniform points stay uniform: a number is the least of those that follow it.

    Args:
      layout: the space.
      points: f[n, P].
      fixed: f[P], coordinates that stay, NaN for the others; None without any.
    """
    orders = [rule for rule in layout.rules if isinstance(rule, Order)]
    sequence, parts = _smaller_first(orders), cast(Sequence[Number], layout.parts)  # others are in no rule of order
    is_fixed = np.zeros(layout.n_parts, bool) if fixed is None else ~np.isnan(fixed)
    points, values = points.copy(), [part.values(points[:, i]) for i, part in enumerate(parts)]
    highest, chain = dict[int, Points](), dict[int, int]()
    for i in reversed(sequence):
        above = [rule for rule in orders if rule.smaller == i]
        limits = [_neighbour(parts[i], highest[rule.larger], rule.or_equal, -1.0) for rule in above]
        highest[i] = values[i] if is_fixed[i] else np.minimum.reduce([parts[i].values(np.ones(len(points))), *limits])
        chain[i] = 1 + max((chain[rule.larger] for rule in above), default=0)
    for i in sequence:
        below = [rule for rule in orders if rule.larger == i]
        limits = [_neighbour(parts[i], values[rule.smaller], rule.or_equal, 1.0) for rule in below]
        lowest = np.maximum.reduce([parts[i].values(np.zeros(len(points))), *limits])
        if not is_fixed[i]:
            half = 0.5 / parts[i].levels if parts[i].levels and not parts[i].search.log else 0.0
            low, high = parts[i].coordinates(lowest) - half, parts[i].coordinates(highest[i]) + half
            drawn = parts[i].values(low + (high - low) * (1.0 - (1.0 - points[:, i]) ** (1.0 / chain[i])))
            values[i] = np.clip(drawn, lowest, np.maximum(lowest, highest[i]))
            points[:, i] = parts[i].coordinates(values[i]).clip(0.0, 1.0)
    return points


def _neighbour(part: Number, values: Points, or_equal: bool, sign: float) -> Points:
    """Returns the value of a part next to other values f[n], on the side of the sign; a real number has equal ones."""
    if not part.levels:
        return values
    steps = sign * (values - part.low) / part.step
    nearest = np.round(steps)
    is_value = np.abs(steps - nearest) < 1e-6
    steps = np.where(is_value, nearest + (not or_equal), np.ceil(steps))
    return np.asarray(part.low + sign * steps * part.step)


def _smaller_first(orders: Sequence[Order]) -> list[int]:
    """Returns the positions in rules of order, the smaller ones first; empty if they are in a circle."""
    left = dict.fromkeys(i for rule in orders for i in (rule.smaller, rule.larger))
    sequence: list[int] = []
    while left:
        ready = [i for i in left if not any(rule.larger == i and rule.smaller in left for rule in orders)]
        if not ready:
            return []
        sequence += ready
        for i in ready:
            del left[i]
    return sequence
