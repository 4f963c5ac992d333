"""Parts of configurations: the values of other hyperparameters that they need, and whether a configuration has them."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.conditions import Interval, describe_conditions
from dre_jax.space.layout_parts import meets
from dre_jax.space.parameters import Parameter
from dre_jax.space.projection import allowed_points, fix_coordinates
from dre_jax.space.scalars import Choice, Value
from dre_jax.space.sobol import sobol_points
from dre_jax.space.space import Params, Space
from dre_jax.space.values import nearest_value, number_of, numbers_of

_POINTS = 64  # drawn at first for the rules
_MAX_VALUES = 10_000  # that are listed


def complete_part(space: Space, params: Mapping[str, Any]) -> Params:
    """Returns a part of a configuration with the values of other hyperparameters for which it is active.

    Raises `DataError` as `Space.check_part`, and for values that no configuration of the space has together.

    Example:
      >>> from dre_jax.tuning import Categorical, Int
      >>> space = Space({"kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 5, when={"kernel": "poly"})})
      >>> complete_part(space, {"degree": 3})
      {'kernel': 'poly', 'degree': 3}
    """
    part = space.check_part(params)
    reason = "the conditions of others exclude them"
    for completed in _active_parts(space, part):
        if has_configuration(space, completed):
            return {name: completed[name] for name in space if name in completed}
        reason = f"the rules exclude them: {', '.join(map(str, space.rules))}"
    for name in part:
        alternatives = space[name].alternatives
        if alternatives and not space.is_active(name, part, space.keys() - part.keys()):
            reason = f"{name!r} is active only for {describe_conditions(alternatives)}"
    raise DataError(f"a configuration must be able to have {part!r}, but {reason}")


def has_configuration(space: Space, part: Mapping[str, Any]) -> bool:
    """Returns whether some configuration has values, which are active together."""
    fixed = space.coordinates(part)
    try:
        allowed_points(space.layout, lambda n: fix_coordinates(sobol_points(n, len(space), 0), fixed), _POINTS, fixed)
    except ConfigError:
        return False
    return True


def _active_parts(space: Space, part: Params) -> Iterator[Params]:
    """Yields a part with values of other hyperparameters, in all ways in which it is active."""
    inactive = next((name for name in space.sequence if name in part and not space.is_active(name, part)), None)
    if inactive is None:
        yield part
        return
    for conditions in space[inactive].alternatives:
        parents = [parent for parent, _ in conditions]
        for combination in itertools.product(*(_values(space, part, *condition) for condition in conditions)):
            yield from _active_parts(space, part | dict(zip(parents, combination, strict=True)))


def _values(space: Space, part: Params, parent: str, values: tuple[Choice, ...] | Interval) -> list[Value]:
    """Returns the values of a hyperparameter that fulfil a condition, the default first; of an interval, one more."""
    parameter = space[parent]
    if parent in part:
        return [part[parent]] if _meets(parameter, part[parent], values) else []
    candidates: list[Value] = [_middle(space, parent, values)] if isinstance(values, Interval) else list(values)
    defaults = [parameter.default] if parameter.has_default and _meets(parameter, parameter.default, values) else []
    candidates = [value for value in candidates if _meets(parameter, value, values) and value not in defaults]
    return [*defaults, *candidates]


def _meets(parameter: Parameter, value: Value, values: tuple[Choice, ...] | Interval) -> bool:
    """Returns whether a value fulfils a condition."""
    return bool(meets(number_of(parameter, value), numbers_of(parameter, values)))


def _middle(space: Space, name: str, interval: Interval) -> Value:
    """Returns a value in the middle of an interval; if there is none, one near it."""
    parameter: Any = space[name]
    part = space.layout.parts[space.sequence.index(name)]
    ends = [parameter.low if interval.above is None else interval.above]
    ends += [parameter.high if interval.below is None else interval.below]
    coordinates = part.coordinates(np.clip(ends, parameter.low, parameter.high).astype(np.float64))
    middle = float(part.values(np.mean(coordinates)))
    if 0 < part.levels <= _MAX_VALUES:
        inside = [value for value in part.all_values() if value in interval]
        middle = float(inside[len(inside) // 2]) if inside else middle
    return nearest_value(parameter, middle)
