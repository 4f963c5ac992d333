"""Descriptions of the columns of a search space: names, kinds, and the hyperparameter that each belongs to.

HPO-B keeps this in ``meta-dataset-descriptors.json`` beside its tables (Pineda Arango et al., HPO-B, NeurIPS 2021
Datasets and Benchmarks): a number is a column of its name, ``NAME.na`` is 1 where it is not set, and a categorical has
a column ``NAME.ohe._LEVEL`` for each of its levels.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dre_jax.data.files import existing_json, location, read_json
from dre_jax.errors import DataError

DESCRIPTORS = "meta-dataset-descriptors"
KINDS = ("float", "int", "ordinal", "level", "order", "missing")
_LEVEL, _MISSING = ".ohe._", ".na"


class Column(NamedTuple):
    """One column of a search space's tables."""

    name: str
    kind: str
    """One of `KINDS`: a number, a whole number, the position among ordered levels, one level of a categorical
    (one-hot), the order of two items of a permutation, or the flag of a hyperparameter that is not set."""
    parent: str
    """The hyperparameter that the column belongs to."""
    log: bool = False
    """True if the number is scaled by its logarithm."""


def level_column(parent: str, level: str) -> str:
    """The name of a level's column.

    >>> level_column("kernel", "rbf")
    'kernel.ohe._rbf'
    """
    return f"{parent}{_LEVEL}{level}"


def order_column(parent: str, first: str, second: str) -> str:
    """The name of the column that says whether an item of a permutation precedes another one.

    >>> order_column("steps", "scale", "select")
    'steps.order._scale_before_select'
    """
    return f"{parent}.order._{first}_before_{second}"


def missing_column(parent: str) -> str:
    """The name of the column that says that a hyperparameter is not set."""
    return f"{parent}{_MISSING}"


def split_level(column: str) -> tuple[str, str] | None:
    """The hyperparameter and the level of a level's column; None for other columns."""
    parent, separator, level = column.partition(_LEVEL)
    return (parent, level) if separator else None


def columns_of(descriptor: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns that a search space's descriptor lists, in its order.

    Raises `KeyError` and `TypeError` for a descriptor of another form than HPO-B's.

    Example:
      >>> columns_of({"variables": {}, "variables_order": ["C", "C.na"], "variables_to_apply_log": ["C"]})[0]
      Column(name='C', kind='float', parent='C', log=True)
    """
    variables, logs = descriptor["variables"], set(descriptor["variables_to_apply_log"])
    return tuple(_column(name, variables.get(name, {}), name in logs) for name in descriptor["variables_order"])


def _column(name: str, variable: Mapping[str, Any], log: bool) -> Column:
    level = split_level(name)
    if level is not None:
        return Column(name, "level", level[0])
    if name.endswith(_MISSING):
        return Column(name, "missing", name.removesuffix(_MISSING))
    return Column(name, "int" if variable.get("kind") == "integer" else "float", name, log)


def read_descriptor(folder: str | os.PathLike[str], space: str) -> dict[str, Any] | None:
    """A search space's descriptor from the folder of its tables; None where the folder has none of it.

    Raises `DataError` for a file that cannot be read.
    """
    path = existing_json(folder, DESCRIPTORS)
    if path is None:
        return None
    content = read_json(path)
    descriptor = content.get(space) if isinstance(content, dict) else None
    if descriptor is None:
        return None
    try:
        columns_of(descriptor)
    except (KeyError, TypeError, AttributeError) as error:
        rule = "a descriptor must have variables, variables_order and variables_to_apply_log"
        raise DataError(f"{location(path, space)}: {rule}, but: {error!r}") from error
    return dict(descriptor)


def differing_columns(ours: Sequence[Column], theirs: Sequence[Column]) -> list[str]:
    """Differences of our columns from a checkpoint's, a phrase a column; whole numbers count as numbers.

    Example:
      >>> differing_columns([Column("C", "float", "C")], [Column("C", "float", "C", True), Column("d", "int", "d")])
      ['C (float here, log float in the checkpoint)', 'd (only in the checkpoint)']
    """
    columns, saved_columns = {c.name: c for c in ours}, {c.name: c for c in theirs}
    differences = []
    for name in dict.fromkeys([*columns, *saved_columns]):
        if name not in saved_columns:
            differences.append(f"{name} (only here)")
        elif name not in columns:
            differences.append(f"{name} (only in the checkpoint)")
        elif _alike(columns[name]) != _alike(saved_columns[name]):
            differences.append(
                f"{name} ({_words(columns[name])} here, {_words(saved_columns[name])} in the checkpoint)"
            )
    if not differences and list(columns) != list(saved_columns):
        differences.append("the order of the columns")
    return differences


def _alike(column: Column) -> tuple[str, bool]:
    return ("float" if column.kind == "int" else column.kind, column.log)


def _words(column: Column) -> str:
    return f"{'log ' if column.log else ''}{column.kind}"
