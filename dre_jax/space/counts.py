"""Rules on how many hyperparameters are in use: ingredients of a recipe, steps of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.layout_counts import Cardinality
from dre_jax.space.parameters import Categorical, Parameter, Permutation
from dre_jax.space.scalars import is_choice, make_fields_plain, plain_value
from dre_jax.space.values import checked_value, number_of

_DEFAULT: Any = ...
"""False, None or 0, whichever the hyperparameter has."""


@dataclass(frozen=True)
class Count:
    """Bounds of the number of hyperparameters in use: of those that are active and not False, None or 0.

    Args:
      unused: names of hyperparameters; or a mapping of names to the values that mean "not in use".
      at_least: lower bound.
      at_most: upper bound.
      equals: the number, in place of bounds.

    Raises:
      ConfigError: for names that are not a list, a repeated name, a value that no hyperparameter can have, or bounds
        that are not whole numbers from 0 to the number of names.

    Example:
      >>> str(Count(["salt", "dye", "acid"], at_most=2)), str(Count({"flip": "no", "crop": "no"}, equals=1))
      ('at most 2 of salt, dye, acid', "exactly 1 of flip != 'no', crop != 'no'")
    """

    unused: Any
    at_least: int | None = None
    at_most: int | None = None
    equals: int | None = None

    def __post_init__(self) -> None:
        make_fields_plain(self)
        unused = _unused_values(self.unused)
        if not unused:
            rule = "a count must be of different names, or a mapping of names to values that mean not in use"
            raise ConfigError(f"{rule}, but got {self.unused!r}")
        object.__setattr__(self, "unused", unused)
        bounds = [bound for bound in (self.at_least, self.at_most, self.equals) if bound is not None]
        is_clear = len(bounds) == 1 or (bounds and self.equals is None)
        are_whole = all(type(bound) is int and 0 <= bound <= len(unused) for bound in bounds)
        if not is_clear or not are_whole or bounds != sorted(bounds):
            rule = "a count needs at_least, at_most or both, in order, or equals, as whole numbers"
            raise ConfigError(f"{rule} from 0 to {len(unused)}, but got {self!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        return tuple(name for name, _ in self.unused)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number."""
        if self.equals is not None:
            return self.equals, self.equals
        return self.at_least or 0, len(self.unused) if self.at_most is None else self.at_most

    def __str__(self) -> str:
        low, high = self.bounds
        number = f"from {low} to {high}"
        if low == high:
            number = f"exactly {low}"
        elif self.at_most is None:
            number = f"at least {low}"
        elif self.at_least is None:
            number = f"at most {high}"
        return f"{number} of {', '.join(name if v is _DEFAULT else f'{name} != {v!r}' for name, v in self.unused)}"

    def checked(self, parameters: Mapping[str, Parameter]) -> Count:
        """Returns the rule. Raises `ConfigError` if a hyperparameter does not have the value that means not in use."""
        for name in self.names:
            if isinstance(parameters[name], Permutation):
                raise ConfigError(f"a count must be of numbers and choices, but {name!r} is a permutation")
            self._unused_value(name, parameters[name])
        return self

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Cardinality:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        values = {name: self._unused_value(name, parameters[name]) for name in self.names}
        unused = ((positions[name], number_of(parameters[name], value)) for name, value in values.items())
        return Cardinality(tuple(unused), *self.bounds)

    def _unused_value(self, name: str, parameter: Parameter) -> Any:
        value = dict(self.unused)[name]
        try:
            return checked_value(name, parameter, _default_unused_value(parameter) if value is _DEFAULT else value)
        except DataError as error:
            remedy = (
                "" if value is not _DEFAULT else f"; name the value that means not in use: Count({{{name!r}: ...}})"
            )
            raise ConfigError(f"a count must be of values of the space, but {error}{remedy}") from None


def _unused_values(unused: Any) -> tuple[tuple[str, Any], ...]:
    """Returns the value of each name that means not in use; empty for anything else."""
    if isinstance(unused, Mapping):
        items = [(name, plain_value(value)) for name, value in unused.items()]
    elif isinstance(unused, (list, tuple)):
        # `dataclasses.replace` passes pairs.
        items = [item if isinstance(item, tuple) and len(item) == 2 else (item, _DEFAULT) for item in unused]
    else:
        items = []
    is_valid = all(isinstance(name, str) and (value is _DEFAULT or is_choice(value)) for name, value in items)
    return tuple(items) if is_valid and len(dict(items)) == len(items) else ()


def _default_unused_value(parameter: Parameter) -> Any:
    """Returns the value that means not in use: False of a boolean, None of other choices, and 0 of a number."""
    if not isinstance(parameter, Categorical):
        return 0
    return False if any(choice is False for choice in parameter.choices) else None
