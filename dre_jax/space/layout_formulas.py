"""Formulas that points of the unit cube must satisfy, in terms of positions of hyperparameters.

The functions take arrays of NumPy or JAX, or the numbers and truth values of one configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import jax
import numpy as np

from dre_jax.runtime.arrays import namespace
from dre_jax.space import expressions, scalar_functions
from dre_jax.space.layout_rules import Parts, functions_of
from dre_jax.space.scalars import Choice

Source = str | Callable[..., Any]
"""A formula as text, or as a function of values by name."""


class Choices:
    """Choices of configurations, which a formula compares with `==` and `!=`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, levels: Any, choices: tuple[Choice, ...]) -> None:
        """Takes the levels f[...]."""
        self._levels, self._choices = levels, choices

    def __array_namespace__(self) -> Any:
        return namespace(self._levels)

    def __eq__(self, other: object) -> Any:
        """Returns the mask bool[...] of configurations that have the choice.

        Raises `ValueError` for anything that is no choice: a misspelt one would never hold.
        """
        matches = [i for i, choice in enumerate(self._choices) if type(choice) is type(other) and choice == other]
        if not matches:
            raise ValueError(f"{other!r} is none of {list(self._choices)!r}")
        return self._levels == matches[0]

    def __ne__(self, other: object) -> Any:
        """Returns the mask bool[...] of configurations that have another choice."""
        return ~(self == other)


@dataclass(frozen=True)
class Argument:
    """A value of a formula."""

    name: str
    position: int
    """Of the hyperparameter."""
    choices: tuple[Choice, ...] = ()
    """The choices of a categorical."""

    def value(self, x: Any) -> Any:
        """Returns numbers, truth values or `Choices` for levels or numbers f[...]."""
        kinds = {type(choice) for choice in self.choices}
        if not kinds <= {int, float} and kinds != {bool}:
            return Choices(x, self.choices)
        if not self.choices:
            return x
        xp = namespace(x)
        return xp.asarray(self.choices, bool if kinds == {bool} else x.dtype)[x.astype(xp.int32)]


@dataclass(frozen=True)
class Predicate:
    """A formula of values that must be true where all its hyperparameters are active."""

    source: Source
    arguments: tuple[Argument, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the hyperparameters."""
        return tuple(argument.position for argument in self.arguments)

    def allows(self, parts: Parts, values: Any, active: Any) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones.

        Of points, it must be true for a little smaller and larger numbers, too: a number changes by rounding when it is
        read from its coordinate in another precision. A configuration has its numbers as they are.
        """
        applies = reduce(and_, (active[i] for i in self.positions))
        xp = functions_of(values[self.positions[0]])
        if xp is scalar_functions:
            holds = bool(self.holds({i: np.float64(values[i]) for i in self.positions}))
            return holds or not applies
        holds = self.holds(values)
        for i in self.positions:
            part = parts[i]
            if not (part.levels and _are_whole(part)):
                room = xp.asarray(part.rounding(values[i]), values[i].dtype)
                for shifted in (values[i] - room, values[i] + room):
                    holds = holds & self.holds({j: values[j] for j in self.positions} | {i: shifted})
        return holds | xp.logical_not(applies)

    def exact(self, parts: Parts, values: Any, active: Any) -> dict[int, float]:
        """Returns no numbers, by position: `allows` leaves room for rounding."""
        return {}

    def holds(self, values: Any) -> Any:
        """Returns the mask bool[...] of levels and numbers by position for which the formula is true."""
        named = {a.name: a.value(values[a.position]) for a in self.arguments}
        if isinstance(self.source, str):
            with np.errstate(all="ignore"):  # a result that is not finite is not true
                return expressions.evaluate(expressions.parse(self.source), named)
        if namespace(values[self.positions[0]]) is not np:
            return self.source(**named)
        with np.errstate(all="ignore"), jax.enable_x64(True):  # a function of JAX would round to float32
            return np.asarray(self.source(**named))


def _are_whole(part: Any) -> bool:
    """Returns whether all values of a part are whole, so that arithmetic does not round them."""
    return not hasattr(part, "step") or (float(part.step).is_integer() and float(part.low).is_integer())
