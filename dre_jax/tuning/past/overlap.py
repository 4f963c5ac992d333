"""Past tasks of overlapping search spaces: hyperparameters that were added, removed or renamed since.

A hyperparameter that a past task does not have is absent: it is encoded as an inactive one, with a column that says
so. Values of hyperparameters that are not in the search space are dropped.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.encoding import INVALID, LevelCode, NumberCode, level_code
from dre_jax.space.parameters import Categorical
from dre_jax.space.space import Space


@dataclass(frozen=True)
class SpaceChanges:
    """What changed between the search spaces of past tasks and a new one.

    Raises `DataError` for an unknown hyperparameter, or a value of `absent` that its hyperparameter does not take.
    Raises `ConfigError` for an argument that is not a mapping, or two old names with the same new one.
    """

    space: Space
    """The new search space."""
    absent: Mapping[str, Any] = field(default_factory=dict)
    """Values that earlier models had for hyperparameters that they did not set; None if there was no such value."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """New names of hyperparameters by their old ones."""

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise ConfigError(f"the search space must be a Space, but got {show(self.space)}")
        for name in ("absent", "renamed"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must map names of hyperparameters, but got {show(getattr(self, name))}")
        self.space.check_names([*self.absent, *self.renamed.values()])
        self.space.check_part(self.values)
        if len(set(self.renamed.values())) < len(self.renamed):
            raise ConfigError(f"a hyperparameter must have one old name, but got renamed={dict(self.renamed)!r}")

    @cached_property
    def values(self) -> dict[str, Any]:
        """The values in `absent` other than None."""
        choices = {name: getattr(self.space[name], "choices", ()) for name in self.absent}
        return {name: value for name, value in self.absent.items() if value is not None or None in choices[name]}

    def update_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a past configuration with new names and the values of `absent`, without unknown hyperparameters.

        Raises `DataError` if it is not a mapping, or has a hyperparameter by its old and its new name.
        """
        return self.complete(self.rename(params))

    def rename(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a past configuration with new names. Raises `DataError` as `update_params`."""
        if not isinstance(params, Mapping):
            raise DataError(f"a configuration must map names to values, but got {params!r}")
        values: dict[str, Any] = {}
        for name, value in params.items():
            new = self.renamed.get(name, name)
            if new in values:
                raise DataError(f"a configuration must have {new!r} by one name, but got {', '.join(params)}")
            values[new] = value
        return values

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a configuration of `rename` with the values of `absent`, without unknown hyperparameters."""
        searched_values = {name: value for name, value in values.items() if name in self.space}
        added_values = {name: value for name, value in self.values.items() if name not in searched_values}
        return self.space.active_part(searched_values | added_values, partial=True) if added_values else searched_values

    def without_inactive(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a past configuration, by its old names, without hyperparameters that are inactive."""
        old_name = {self.renamed.get(name, name): name for name in params}
        active = self.space.active_part({new: params[old] for new, old in old_name.items()}, partial=True)
        return {name: value for name, value in params.items() if self.renamed.get(name, name) in active}

    def unknown(self, names: Collection[str]) -> list[str]:
        """Returns the names of past hyperparameters that are not in the search space."""
        return [name for name in names if self.renamed.get(name, name) not in self.space]


def absent_names(space: Space, configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the hyperparameters that no configuration of a past task has, though some should."""
    present = {name for params in configurations for name in params}
    missing = [name for name in space.sequence if name not in present]
    return [name for name in missing if any(space.is_active(name, params) for params in configurations)]


def with_absence(space: Space, names: Collection[str]) -> Space:
    """Returns the space with an encoding in which hyperparameters can be absent."""
    codes = dict(space.codes)
    for name in names:
        code, parameter = space.code(name), space[name]
        if isinstance(parameter, Categorical) and isinstance(code, NumberCode):
            codes[name] = level_code(parameter, can_be_missing=True)
        elif not isinstance(code, LevelCode):
            codes[name] = replace(code, missing=True)
        elif INVALID not in code.columns:
            codes[name] = replace(code, columns=(*code.columns, INVALID))
    if codes == space.codes:
        return space
    columns = [column.name for column in Space(dict(space), codes=codes).columns]
    unchanged_names = [column.name for column in space.columns if column.name in columns]
    return Space(dict(space), codes=codes, order=list(dict.fromkeys([*unchanged_names, *columns])))
