"""Lists of the configurations that may be suggested."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.layout_rules import Table
from dre_jax.space.parameters import Parameter
from dre_jax.space.scalars import plain_value, to_list
from dre_jax.space.values import checked_value, number_of

_MOST_ROWS = 10_000


@dataclass(frozen=True, repr=False)
class Allowed:
    """The values that hyperparameters may have together: a table of machines, a stock.

    Args:
      rows: at most 10,000 mappings of names to values, or a data frame. A hyperparameter that a row lacks, or has NaN
        for, is inactive there.

    Raises:
      ConfigError: without rows, for too many rows, or for a row that is not a mapping.

    Example:
      >>> str(Allowed([{"cores": 4, "memory": 16.0}, {"cores": 8, "memory": 64.0}]))
      'cores, memory in one of 2 rows'
    """

    rows: Any

    def __post_init__(self) -> None:
        rows = self.rows.to_dict("records") if hasattr(self.rows, "to_dict") else self.rows
        if not isinstance(rows, (list, tuple)) or not 0 < len(rows) <= _MOST_ROWS:
            rule = f"allowed configurations must be 1 to {_MOST_ROWS} mappings in a list, or a data frame"
            raise ConfigError(f"{rule}, but got {show(rows)}")
        unique: dict[tuple[tuple[str, Any], ...], Any] = {}
        for row in rows:
            try:
                items = ((name, _plain(value)) for name, value in dict(row).items())
                values = tuple((name, value) for name, value in items if value == value)
                unique[values] = values[0]
            except (TypeError, ValueError, IndexError):
                raise ConfigError(f"an allowed configuration must map names to values, but got {show(row)}") from None
        object.__setattr__(self, "rows", tuple(unique))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The hyperparameters of the rule."""
        return tuple(dict.fromkeys(name for row in self.rows for name, _ in row))

    @cached_property
    def _mappings(self) -> tuple[dict[str, Any], ...]:
        return tuple(map(dict, self.rows))

    def __repr__(self) -> str:
        return f"Allowed({show(list(self._mappings))})"

    def __str__(self) -> str:
        return f"{', '.join(self.names)} in one of {len(self.rows)} rows"

    def checked(self, parameters: Mapping[str, Parameter]) -> Allowed:
        """Returns the rule with values of the declared types. Raises `ConfigError` for those that a space lacks."""
        return Allowed([_checked_row(row, self.names, parameters) for row in self._mappings])

    def in_layout(self, parameters: Mapping[str, Parameter], positions: Mapping[str, int]) -> Table:
        """Returns the rule about points, for hyperparameters and their positions by name."""
        rows = [
            tuple(number_of(parameters[name], row[name]) if name in row else math.nan for name in self.names)
            for row in self._mappings
        ]
        return Table(tuple(positions[name] for name in self.names), tuple(rows))


def _plain(value: Any) -> Any:
    """Returns a value that can be compared: the items of a permutation as a tuple."""
    value = to_list(plain_value(value))
    return tuple(value) if isinstance(value, list) else value


def _checked_row(row: Mapping[str, Any], names: Iterable[str], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Returns a row with values of the declared types."""
    for name in names:
        if name not in row and not parameters[name].when:
            raise ConfigError(f"an allowed configuration must have {name!r}, but got {row!r}")
    try:
        return {name: checked_value(name, parameters[name], value) for name, value in row.items()}
    except DataError as error:
        raise ConfigError(f"an allowed configuration must be of the space, but {error}") from None
