"""How hyperparameters are encoded as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dre_jax.data.columns import level_column, missing_column
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError
from dre_jax.search.layout import Conditions, Level, Number
from dre_jax.tuning.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.tuning.space.scalars import is_finite, levels_of

INVALID = "INVALID"
"""The level of a categorical that is not set."""


@dataclass(frozen=True)
class NumberCode:
    """Encoding of a number by bounds other than its own."""

    scale: Scale
    empty: float = 0.0
    """Value of the column if the number is not set."""
    missing: bool = False
    """Whether another column flags the number as not set."""
    unset: float | None = None
    """A value that is encoded as not set."""


@dataclass(frozen=True)
class LevelCode:
    """Encoding of levels by other names than their own."""

    names: tuple[str, ...]
    """The level of each choice; `INVALID` for a choice that is encoded as not set."""
    columns: tuple[str, ...]
    """All levels with a column."""


Code = NumberCode | LevelCode


def default_code(parameter: Parameter) -> Code:
    """Returns the encoding of a hyperparameter by its own bounds or choices."""
    if isinstance(parameter, Categorical):
        names = levels_of(parameter.choices)
        extra = (INVALID,) if parameter.when and not parameter.ordered else ()
        return LevelCode(names, (*names, *extra))
    return NumberCode(Scale(parameter.low, parameter.high, parameter.log), missing=bool(parameter.when))


def check_code(name: str, parameter: Parameter, code: Code) -> None:
    """Checks that a code encodes a hyperparameter.

    Raises:
      ConfigError: for the code of another kind, a scale that is none, a value that is not set without a flag for it, or
        levels that are not one a choice or have no column.
    """
    if isinstance(parameter, Categorical) and isinstance(code, LevelCode):
        if not len(parameter.choices) == len(code.names) == len(set(code.names) & set(code.columns)):
            raise ConfigError(f"the code of {name!r} must have a column for every choice, but got {code!r}")
        return
    if isinstance(parameter, Categorical) or isinstance(code, LevelCode):
        raise ConfigError(f"the code of {name!r} must be that of its kind, but got {code!r}")
    scale = code.scale
    numbers = (scale.low, scale.high, scale.offset, code.empty, 0.0 if code.unset is None else code.unset)
    if not all(map(is_finite, numbers)) or scale.low > scale.high or not math.isfinite(scale.high - scale.low):
        raise ConfigError(f"the code of {name!r} must have finite numbers and bounds in order, but got {code!r}")
    if scale.log and scale.low + scale.offset <= 0:
        raise ConfigError(f"low + offset > 0 must hold on a log scale, but the code of {name!r} is {code!r}")
    if code.unset is not None and not code.missing:
        raise ConfigError(f"a value that counts as not set needs a flag, but the code of {name!r} is {code!r}")


def number_part(
    name: str,
    parameter: Float | Int,
    code: Code,
    position: Mapping[str, int],
    alternatives: tuple[Conditions, ...],
) -> Number:
    """Returns a number's coordinate and its encoding.

    Args:
      name: the hyperparameter's.
      parameter: how it is searched.
      code: how it is encoded.
      position: of columns, by name.
      alternatives: conditions of which one must hold for it to be active.
    """
    step = float(parameter.step or 0.0)
    levels = 0 if not step else round((parameter.high - parameter.low) / step) + 1
    if parameter.low == parameter.high:
        levels, step = 1, 1.0
    half = 0.5 if parameter.log and levels > 1 else 0.0
    search = Scale(float(parameter.low) - half, float(parameter.high) + half, parameter.log)
    assert isinstance(code, NumberCode)
    return Number(
        search,
        float(parameter.low),
        step,
        levels,
        position[name],
        code.scale,
        code.empty,
        position[missing_column(name)] if code.missing else None,
        code.unset,
        alternatives,
    )


def level_part(
    name: str,
    parameter: Categorical,
    theirs: Categorical,
    code: Code,
    own: bool,
    position: Mapping[str, int],
    alternatives: tuple[Conditions, ...],
) -> Level:
    """Returns a categorical's coordinate and its encoding.

    Args:
      name: the hyperparameter's.
      parameter: how it is searched.
      theirs: the categorical of the space that encodes it, of which it may have fewer choices.
      code: how it is encoded.
      own: whether the code was given with that space, and is not the hyperparameter's own.
      position: of columns, by name.
      alternatives: conditions of which one must hold for it to be active.
    """
    n = len(parameter.choices)
    assert isinstance(code, LevelCode)
    index = [theirs.index(choice) for choice in parameter.choices]
    if theirs.ordered and not own:
        last = max(len(theirs.choices) - 1, 1)
        if theirs.when:
            rows: tuple[tuple[float, ...], ...] = (*((i / last, 0.0) for i in index), (0.0, 1.0))
            return Level(n, (position[name], position[missing_column(name)]), rows, parameter.ordered, alternatives)
        return Level(n, (position[name],), (*((i / last,) for i in index), (0.0,)), parameter.ordered, alternatives)
    columns = tuple(position[level_column(name, level)] for level in code.columns)
    names = [*(code.names[i] for i in index), INVALID]
    rows = tuple(tuple(float(column == level) for column in code.columns) for level in names)
    return Level(n, columns, rows, parameter.ordered, alternatives)
