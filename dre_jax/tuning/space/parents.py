"""The order of hyperparameters that depend on each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.space.conditions import Interval
from dre_jax.tuning.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.tuning.space.values import checked_value


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
