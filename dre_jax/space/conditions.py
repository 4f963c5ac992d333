"""Conditions under which a hyperparameter is active."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.space.layout_parts import Between, meets
from dre_jax.space.scalars import Choice, is_choice, is_finite, make_fields_plain, plain_value, to_list


@dataclass(frozen=True)
class Interval:
    """The numbers strictly between two bounds: a condition on a number.

    Args:
      above: lower bound; None for none.
      below: upper bound; None for none.

    Raises:
      ConfigError: without a bound, or for bounds that are not finite or not in order.

    Example:
      >>> 0.5 in Interval(above=0.1), 0.1 in Interval(above=0.1)
      (True, False)
    """

    above: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        make_fields_plain(self)
        bounds = [bound for bound in (self.above, self.below) if bound is not None]
        if not bounds or not all(map(is_finite, bounds)) or bounds != sorted(set(bounds)):
            raise ConfigError(f"an interval must have finite bounds in order, at least one, but got {self!r}")

    def __contains__(self, value: Any) -> bool:
        return bool(meets(value, self.numbers))

    @property
    def numbers(self) -> Between:
        """The interval as the layout of a space has it."""
        return Between(-math.inf if self.above is None else self.above, math.inf if self.below is None else self.below)


Conditions = tuple[tuple[str, tuple[Choice, ...] | Interval], ...]
"""Values of other hyperparameters, by name, for which a hyperparameter is active."""


def conditions_of(when: Any) -> Conditions | tuple[Conditions, ...]:
    """Returns the conditions in `when`, whose values are single choices, sequences of choices, or an interval.

    A list of mappings has alternative conditions, one of which must hold. Raises `ConfigError` for anything else.
    """
    if when is None:
        return ()
    if isinstance(when, list) and when:
        alternatives = tuple(map(conditions_of, when))
        if not all(alternatives):
            raise ConfigError(f"each alternative of when must have a condition, but got {when!r}")
        return alternatives if len(alternatives) > 1 else alternatives[0]  # type: ignore[return-value]
    if not isinstance(when, Mapping) or not all(isinstance(name, str) for name in when):
        raise ConfigError(f"when must map names of hyperparameters to their values, but got {when!r}")
    conditions: list[Any] = []
    for name, values in when.items():
        if isinstance(values, Mapping) and values.keys() <= {"above", "below"}:
            values = Interval(**values)
        if isinstance(values, Interval):
            conditions.append((name, values))
            continue
        values = to_list(values)
        values = tuple(map(plain_value, values)) if isinstance(values, (list, tuple, set, frozenset)) else (values,)
        if not values or not all(map(is_choice, values)):
            raise ConfigError(f"when must name at least one value of {name!r}, but got {when[name]!r}")
        conditions.append((name, values))
    return tuple(conditions)


def describe_conditions(alternatives: tuple[Conditions, ...]) -> str:
    """Returns alternative conditions of a hyperparameter as text.

    Example:
      >>> describe_conditions(conditions_of([{"a": "x", "b": Interval(below=2)}, {"c": [1, 2]}]))
      "a in ['x'] and b below 2, or c in [1, 2]"
    """

    def text(name: str, values: tuple[Choice, ...] | Interval) -> str:
        if not isinstance(values, Interval):
            return f"{name} in {list(values)!r}"
        bounds = [f"{side} {bound!r}" for side, bound in vars(values).items() if bound is not None]
        return f"{name} {' and '.join(bounds)}"

    return ", or ".join(" and ".join(text(*condition) for condition in conditions) for conditions in alternatives)


def as_mapping(when: Any) -> Any:
    """Returns conditions as a mapping, or a list of them; `dataclasses.replace` passes normalised ones."""
    if not isinstance(when, tuple):
        return when
    return dict(when) if not when or isinstance(when[0][0], str) else [dict(item) for item in when]
