"""The order of hyperparameters that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.space.parameters import Categorical, Int, Parameter
from dre_jax.tuning.space.values import checked_value


def parents_first(parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    """Returns the names, those that others depend on first. Raises `ConfigError` for a condition that cannot hold."""
    for name, parameter in parameters.items():
        for parent, values in parameter.when:
            if not isinstance(parameters.get(parent), (Categorical, Int)):
                rule = "a hyperparameter can depend on a Categorical or an Int of its space"
                raise ConfigError(f"{rule}, but {name!r} depends on {parent!r}")
            for value in values:
                try:
                    checked_value(parent, parameters[parent], value)
                except DataError as error:
                    raise ConfigError(f"{name!r} depends on {parent} = {value!r}, but {error}") from None
    order: dict[str, None] = {}
    while len(order) < len(parameters):
        ready = [
            name
            for name, parameter in parameters.items()
            if name not in order and all(parent in order for parent, _ in parameter.when)
        ]
        if not ready:
            remaining = [name for name in parameters if name not in order]
            raise ConfigError(f"a hyperparameter must not depend on itself, but {', '.join(remaining)} do")
        order |= dict.fromkeys(ready)
    return tuple(order)
