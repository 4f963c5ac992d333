"""How hyperparameters are encoded as columns, and the values that columns hold."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dre_jax.data.columns import Column, level_column, missing_column, order_column
from dre_jax.data.scale import Scale
from dre_jax.errors import ConfigError
from dre_jax.space.layout_orders import Order
from dre_jax.space.layout_parts import Conditions, Level, Number
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation
from dre_jax.space.scalars import is_finite, levels_of

INVALID = "INVALID"
"""The level of a categorical that is not set."""


@dataclass(frozen=True)
class NumberCode:
    """Encoding of a number, or of the position among ordered choices, in one column."""

    scale: Scale
    empty: float = 0.0
    """Value of the column if the number is not set."""
    missing: bool = False
    """Whether another column flags the number as not set."""
    unset: float | None = None
    """A value that is encoded as not set."""


@dataclass(frozen=True)
class LevelCode:
    """Encoding of levels in one column each."""

    names: tuple[str, ...]
    """The level of each choice; `INVALID` for a choice that is encoded as not set."""
    columns: tuple[str, ...]
    """All levels with a column."""


@dataclass(frozen=True)
class OrderCode:
    """Encoding of an order in one column for each pair of items."""

    items: tuple[str, ...]
    """The items as texts."""
    missing: bool = False
    """Whether another column flags the order as not set."""


Code = NumberCode | LevelCode | OrderCode


def default_code(parameter: Parameter) -> Code:
    """Returns the encoding of a hyperparameter by its own bounds or choices."""
    if isinstance(parameter, Permutation):
        return OrderCode(levels_of(parameter.items), missing=bool(parameter.when))
    if not isinstance(parameter, Categorical):
        return NumberCode(Scale(parameter.low, parameter.high, parameter.log), missing=bool(parameter.when))
    if parameter.ordered:
        return NumberCode(Scale(0.0, len(parameter.choices) - 1.0), missing=bool(parameter.when))
    return level_code(parameter, can_be_missing=bool(parameter.when))


def level_code(parameter: Categorical, *, can_be_missing: bool) -> LevelCode:
    """Returns the encoding of choices by their texts, with a level for none of them if they can be missing."""
    names = levels_of(parameter.choices)
    return LevelCode(names, (*names, INVALID) if can_be_missing else names)


def check_code(name: str, parameter: Parameter, code: Code) -> None:
    """Raises `ConfigError` unless a code can encode a hyperparameter."""
    if isinstance(code, OrderCode) or isinstance(parameter, Permutation):
        if isinstance(code, OrderCode) and code.items == levels_of(getattr(parameter, "items", ())):
            return
        raise ConfigError(f"the code of {name!r} must have the items of a permutation, but is {code!r}")
    if isinstance(code, LevelCode):
        n_columns = len(set(code.names) & set(code.columns))
        fits = isinstance(parameter, Categorical) and len(parameter.choices) == len(code.names) == n_columns
    else:
        scale, unset = code.scale, 0.0 if code.unset is None else code.unset
        fits = not isinstance(parameter, Categorical) and (code.missing or code.unset is None)
        fits = fits and all(map(is_finite, (scale.low, scale.high, scale.offset, code.empty, unset)))
        fits = fits and scale.low <= scale.high and math.isfinite(scale.high - scale.low)
        fits = fits and (not scale.log or scale.low + scale.offset > 0)
    if not fits:
        numbers = "finite bounds in order, above 0 on a log scale, and a flag for a value that counts as not set"
        rule = "a column for every choice" if isinstance(parameter, Categorical) else numbers
        raise ConfigError(f"the code of {name!r} must have {rule}, but is {code!r}")


def columns_of(name: str, parameter: Parameter, code: Code) -> Iterator[Column]:
    """Yields the columns of a hyperparameter."""
    if isinstance(code, LevelCode):
        yield from (Column(level_column(name, level), "level", name) for level in code.columns)
        return
    if isinstance(code, OrderCode):
        for first, second in itertools.combinations(code.items, 2):
            yield Column(order_column(name, first, second), "order", name)
    else:
        kind = {Categorical: "ordinal", Int: "int", Float: "float"}[type(parameter)]
        yield Column(name, kind, name, code.scale.log)
    if code.missing:
        yield Column(missing_column(name), "missing", name)


def ordered_columns(
    parameters: Mapping[str, Parameter], codes: Mapping[str, Code], order: Sequence[str] | None
) -> tuple[Column, ...]:
    """Returns the columns of all hyperparameters: one hyperparameter after the other, or by the names of an order.

    Raises `ConfigError` if two columns have the same name, or the order names other columns.
    """
    columns = [column for name in parameters for column in columns_of(name, parameters[name], codes[name])]
    names = [column.name for column in columns] if order is None else list(order)
    by_name = {column.name: column for column in columns}
    if len(by_name) < len(columns):
        raise ConfigError(f"columns must have different names, but got {[c.name for c in columns]}")
    if sorted(by_name) != sorted(names):
        raise ConfigError(f"the order must name the columns {', '.join(by_name)}, but got {', '.join(names)}")
    return tuple(by_name[name] for name in names)


def layout_part(
    name: str,
    parameter: Parameter,
    theirs: Parameter,
    code: Code,
    position: Mapping[str, int],
    alternatives: tuple[Conditions, ...],
) -> Number | Level | Order:
    """Returns the coordinate of a hyperparameter and its encoding.

    ``theirs`` is the hyperparameter of the encoding space, which may have more values. ``position`` has the positions
    of columns by name. One of the alternatives must hold for the hyperparameter to be active.
    """
    columns = tuple(position[column.name] for column in columns_of(name, theirs, code))
    if isinstance(parameter, Permutation):
        n_pairs = math.comb(len(parameter.items), 2)
        missing = columns[n_pairs] if len(columns) > n_pairs else None
        return Order(len(parameter.items), columns[:n_pairs], missing, alternatives)
    if isinstance(parameter, Categorical):
        index = [theirs.index(choice) for choice in parameter.choices]  # type: ignore[union-attr]
        if isinstance(code, LevelCode):
            names = [*(code.names[i] for i in index), INVALID]
            rows = [tuple(float(column == level) for column in code.columns) for level in names]
        else:
            assert isinstance(code, NumberCode)
            rows = [*((float(code.scale.to_unit(i)), 0.0)[: len(columns)] for i in index), (0.0, 1.0)[: len(columns)]]
        return Level(len(index), columns, tuple(rows), parameter.ordered, alternatives)
    assert isinstance(code, NumberCode)
    low, high, step = float(parameter.low), float(parameter.high), float(parameter.step or 0.0)
    levels = 0 if not step else round((parameter.high - parameter.low) / step) + 1
    if low == high:
        levels, step = 1, 1.0
    half = step / 2 if parameter.log and levels > 1 else 0.0
    search = Scale(low - min(half, low / 2), high + half, parameter.log) if half else Scale(low, high, parameter.log)
    missing = columns[1] if code.missing else None
    return Number(search, low, step, levels, columns[0], code.scale, code.empty, missing, code.unset, alternatives)
