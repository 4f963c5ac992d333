"""Values of one hyperparameter: checks, the value nearest to a number, and values of another hyperparameter."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.conditions import Interval
from dre_jax.space.layout_parts import Between
from dre_jax.space.parameters import Categorical, Float, Int, Parameter, Permutation, steps_in_words
from dre_jax.space.scalars import Choice, Value, is_finite, plain_value, value_at_step


def number_of(parameter: Parameter, value: Any) -> float:
    """Returns the position of a choice or an order, or a number itself, for conditions, rules and coordinates.

    Raises `TypeError` for text in place of a number, and `ValueError` for an unknown choice.
    """
    number: float = (parameter.index(value) if isinstance(parameter, (Categorical, Permutation)) else value) + 0.0
    return number


def numbers_of(parameter: Parameter, values: tuple[Choice, ...] | Interval) -> tuple[float, ...] | Between:
    """Returns the values of a condition on a hyperparameter as the layout has them."""
    if isinstance(values, Interval):
        return values.numbers
    return tuple(number_of(parameter, value) for value in values)


def checked_value(name: str, parameter: Parameter, value: Any) -> Value:
    """Returns the value as the hyperparameter has it. Raises `DataError` for a value that it does not take."""
    value = plain_value(value)
    if isinstance(parameter, Permutation):
        try:
            return parameter.at(parameter.index(value))
        except ValueError:
            raise DataError(f"{name} must be an order of {list(parameter.items)!r}, but got {value!r}") from None
    if isinstance(parameter, Categorical):
        try:
            return parameter.choices[parameter.index(value)]
        except (ValueError, TypeError):
            raise DataError(f"{name} must be one of {list(parameter.choices)!r}, but got {value!r}") from None
    room = 0.0 if isinstance(parameter, Int) else 1e-9 * max(abs(parameter.low), abs(parameter.high))
    is_inside = is_finite(value) and parameter.low - room <= value <= parameter.high + room
    if is_inside:
        number: Any = nearest_value(parameter, float(value) if isinstance(parameter, Float) else value)
        if parameter.step is None or abs(number - value) <= 1e-6 * max(abs(parameter.step), room):
            return number
    rule = f"{name} must be a {'whole ' if isinstance(parameter, Int) else ''}number"
    rule = f"{rule} in [{parameter.low!r}, {parameter.high!r}]"
    raise DataError(f"{rule}{steps_in_words(parameter) if is_inside else ''}, but got {value!r}")


def nearest_value(parameter: Parameter, x: float) -> Value:
    """Returns the value nearest to a number; for a categorical or a permutation, the one with this index."""
    if isinstance(parameter, Permutation):
        return parameter.at(int(x))
    if isinstance(parameter, Categorical):
        return parameter.choices[int(x)]
    x = min(max(x, parameter.low), parameter.high)
    if isinstance(parameter, Int):
        steps = round((x - parameter.low) / parameter.step)
        return min(parameter.low + steps * parameter.step, parameter.high)
    if parameter.step is None:
        return float(x)
    steps = round((x - parameter.low) / parameter.step)
    return min(value_at_step(parameter.low, parameter.step, steps), parameter.high)


def unreadable_reasons(name: str, ours: Parameter, theirs: Parameter) -> Iterator[str]:
    """Yields the reasons why a hyperparameter of another space cannot be encoded."""
    kinds = (Categorical, Permutation)
    if [isinstance(ours, kind) for kind in kinds] != [isinstance(theirs, kind) for kind in kinds]:
        yield f"{name} ({_kind(theirs)} here, {_kind(ours)} in the surrogate)"
    elif isinstance(ours, Categorical) and isinstance(theirs, Categorical):
        try:
            list(map(ours.index, theirs.choices))
        except ValueError:
            yield f"{name} (choices {list(theirs.choices)!r} here, {list(ours.choices)!r} in the surrogate)"
    elif isinstance(ours, Permutation) and isinstance(theirs, Permutation):
        if ours.items != theirs.items:
            yield f"{name} (items {list(theirs.items)!r} here, {list(ours.items)!r} in the surrogate)"
    elif theirs.low < ours.low or theirs.high > ours.high:  # type: ignore[union-attr]
        bounds, surrogate_bounds = (f"[{p.low!r}, {p.high!r}]" for p in (theirs, ours))  # type: ignore[union-attr]
        yield f"{name} ({bounds} here, {surrogate_bounds} in the surrogate)"


def _kind(parameter: Parameter) -> str:
    return {Float: "a number", Int: "a whole number", Categorical: "a categorical", Permutation: "a permutation"}[
        type(parameter)
    ]


def parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Returns the names, those that others depend on first. Raises `ConfigError` for a condition that cannot hold."""
    for name, parameter in parameters.items():
        for parent, values in itertools.chain(*parameter.alternatives):
            kinds = (Float, Int) if isinstance(values, Interval) else (Categorical, Int)
            if not isinstance(parameters.get(parent), kinds):
                rule = "a hyperparameter can depend on values of a Categorical or an Int, or an Interval of a number"
                raise ConfigError(f"{rule}, but {name!r} depends on {parent!r}")
            for value in () if isinstance(values, Interval) else values:
                try:
                    checked_value(parent, parameters[parent], value)
                except DataError as error:
                    raise ConfigError(f"{name!r} depends on {parent} = {value!r}, but {error}") from None
    order: dict[str, None] = {}
    while len(order) < len(parameters):
        ready = [
            name
            for name, parameter in parameters.items()
            if name not in order and all(parent in order for parent in parameter.parents)
        ]
        if not ready:
            remaining = [name for name in parameters if name not in order]
            raise ConfigError(f"a hyperparameter must not depend on itself, but {', '.join(remaining)} do")
        order |= dict.fromkeys(ready)
    return tuple(order)
