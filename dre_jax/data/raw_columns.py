"""Columns that HPO-B's tables show on a raw scale though they were drawn on a logarithmic one, and their correction.

HPO-B takes logarithms of the hyperparameters in `variables_to_apply_log` of a search space's descriptor, then scales
all columns to [0, 1]. In seven search spaces hyperparameters with values over several orders of magnitude are not in
that list, so most of their values lie next to 0. The correction adds them to the list, and repeats HPO-B's
transformation.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dre_jax.data.columns import DESCRIPTORS, columns_of, read_descriptor
from dre_jax.data.scale import Scale
from dre_jax.data.spaces import SPLITS, SearchSpace, Task
from dre_jax.errors import DataError

COLUMNS = ("published", "fixed")
"""Tables as published, or with logarithms of the columns in `RAW`."""
RAW: Mapping[str, tuple[str, ...]] = {
    "5891": ("cost", "gamma"),
    "5970": ("lambda",),
    "6766": ("lambda",),
    "6767": ("eta", "lambda", "alpha"),
    "6794": ("mtry",),
    "7607": ("mtry",),
    "7609": ("mtry",),
}
"""Hyperparameters without the logarithm by search space."""
LOG_OFFSET = 1e-4
"""HPO-B adds it to numbers before it takes their logarithm, as some are 0."""


def fixed_descriptor(space: str, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the descriptor of a search space with the hyperparameters of `RAW` on a logarithmic scale.

    Example:
      >>> fixed_descriptor("5970", {"variables_to_apply_log": []})
      {'variables_to_apply_log': ['lambda']}
    """
    logarithms = dict.fromkeys([*descriptor["variables_to_apply_log"], *RAW.get(space, ())])
    return {**descriptor, "variables_to_apply_log": list(logarithms)}


def fix_columns(folder: str | os.PathLike[str], space: SearchSpace) -> SearchSpace:
    """Returns a search space with logarithms of the columns in `RAW`, scaled to [0, 1]; others stay as they are.

    Raises `DataError` if the folder has no descriptor of the search space, or one without the ranges.
    """
    if space.name not in RAW:
        return space
    descriptor = read_descriptor(folder, space.name)
    if descriptor is None or space.columns is None:
        raise DataError(f"{os.fspath(folder)}: corrected columns need {DESCRIPTORS}.json with space {space.name!r}")
    order = [column.name for column in space.columns]
    try:
        ranges = {
            order.index(name): tuple(float(descriptor["variables"][name][f"{end}_before_tf"]) for end in ("min", "max"))
            for name in RAW[space.name]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{DESCRIPTORS}.json: space {space.name!r} must have the ranges of {RAW[space.name]}"
        ) from error

    def fix_task(task: Task) -> Task:
        x = task.X.copy()
        for column, (low, high) in ranges.items():
            value = Scale(low, high).from_unit(x[:, column].astype(np.float64))
            x[:, column] = Scale(low, high, log=True, offset=LOG_OFFSET).to_unit(value).clip(0.0, 1.0)
        return replace(task, X=x)

    train, validation, test = ({name: fix_task(task) for name, task in space.split(split).items()} for split in SPLITS)
    columns = columns_of(fixed_descriptor(space.name, descriptor))
    return replace(space, train=train, validation=validation, test=test, columns=columns)
