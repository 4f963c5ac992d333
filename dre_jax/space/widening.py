"""Search spaces that are widened to configurations outside of them, so that a method can read these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dre_jax.errors import DataError
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.scalars import is_choice, is_finite, is_whole
from dre_jax.space.space import Space
from dre_jax.space.values import checked_value

_MAX = 2.0**52
"""Maximum size of numbers: the range of whole numbers is at most 2**53."""


def widened_space(space: Space, configurations: Iterable[Mapping[str, Any]]) -> Space:
    """Returns a space that contains another one and configurations outside of it, without rules.

    Numbers have wider bounds, and no steps where a value is between them; choices come after those of the space. What
    no hyperparameter of this kind can take is left out: text in place of a number, 0 on a log scale, a new choice among
    ordered ones, or a permutation of other items.

    Example:
      >>> space = Space({"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"])})
      >>> wider = widened_space(space, [{"x": 1.5, "kernel": "rbf"}, {"x": 0.5, "kernel": "linear"}])
      >>> wider["x"].high, wider["kernel"].choices
      (1.5, ('rbf', 'poly', 'linear'))
    """
    configurations = list(configurations)
    parameters = {name: _widened(name, space[name], [c[name] for c in configurations if name in c]) for name in space}
    return space if parameters == dict(space) else Space(parameters)


def _widened(name: str, parameter: Parameter, values: Sequence[Any]) -> Parameter:
    """Returns a hyperparameter that takes further values, or those of them that it can take."""
    outside = [value for value in values if not _takes(name, parameter, value)]
    if isinstance(parameter, Categorical):
        new = {(type(value), value): value for value in outside if is_choice(value)}  # True, 1 and 1.0 differ
        return replace(parameter, choices=(*parameter.choices, *new.values())) if not parameter.ordered else parameter
    if isinstance(parameter, Permutation):
        return parameter
    numbers = [value for value in outside if _is_number_of(parameter, value)]
    if not numbers:
        return parameter
    fields: dict[str, Any] = {"low": min(parameter.low, *numbers), "high": max(parameter.high, *numbers)}
    fields |= {"step": 1 if isinstance(parameter, Int) else None, "likely": None, "default": None}
    return replace(parameter, **fields)


def _takes(name: str, parameter: Parameter, value: Any) -> bool:
    try:
        checked_value(name, parameter, value)
    except DataError:
        return False
    return True


def _is_number_of(parameter: Float | Int, value: Any) -> bool:
    """Returns whether a number could be between other bounds of a hyperparameter."""
    is_number = is_whole(value) if isinstance(parameter, Int) else is_finite(value)
    return is_number and abs(value) <= _MAX and (not parameter.log or value > 0)
