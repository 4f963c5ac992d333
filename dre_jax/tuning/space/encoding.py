"""How hyperparameters are encoded as columns, and the values that columns hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dre_jax.data.columns import Column, level_column, missing_column
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError
from dre_jax.search.layout import Conditions, Level, Number
from dre_jax.tuning.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.tuning.space.scalars import Choice, is_finite, levels_of
from dre_jax.tuning.space.values import nearest_value

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


def columns_of(name: str, parameter: Parameter, code: Code, own_code: bool) -> Iterator[Column]:
    """Yields the columns of a hyperparameter; ``own_code`` if its code is not the default one."""
    if isinstance(code, NumberCode):
        yield Column(name, "int" if isinstance(parameter, Int) else "float", name, code.scale.log)
        if code.missing:
            yield Column(missing_column(name), "missing", name)
    elif isinstance(parameter, Categorical) and parameter.ordered and not own_code:
        yield Column(name, "ordinal", name)
        if parameter.when:
            yield Column(missing_column(name), "missing", name)
    else:
        yield from (Column(level_column(name, level), "level", name) for level in code.columns)


def is_absent(name: str, code: Code, row: Mapping[str, float]) -> bool:
    """Returns whether columns, by name, say that a hyperparameter is not set, and none of its values says so."""
    if isinstance(code, NumberCode):
        return code.missing and code.unset is None and row[missing_column(name)] >= 0.5
    has_flag = INVALID in code.columns and INVALID not in code.names
    return has_flag and row[level_column(name, INVALID)] >= 0.5


def decode_value(name: str, parameter: Parameter, code: Code, own_code: bool, row: Mapping[str, float]) -> Choice:
    """Returns the value in columns, by name; ``own_code`` if the hyperparameter's code is not the default one."""
    if isinstance(parameter, Categorical):
        if parameter.ordered and not own_code:
            last = len(parameter.choices) - 1
            return parameter.choices[round(min(max(row[name], 0.0), 1.0) * last)]
        assert isinstance(code, LevelCode)
        strength = [row[level_column(name, level)] for level in code.names]
        return parameter.choices[int(np.argmax(strength))]
    assert isinstance(code, NumberCode)
    if code.unset is not None and code.missing and row[missing_column(name)] >= 0.5:
        return nearest_value(parameter, code.unset)
    x = code.scale.from_unit(min(max(row[name], 0.0), 1.0))
    return nearest_value(parameter, float(x))


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
