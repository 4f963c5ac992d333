"""Data made from data: test tasks on which the past misleads, and past tasks of an earlier search space."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dre_jax.checks import one_of
from dre_jax.data import SearchSpace, Task, list_spaces, load_space, write_dataset
from dre_jax.data.columns import DESCRIPTORS, Column, missing_column, read_descriptor
from dre_jax.data.files import write_json
from dre_jax.hpob.jobs import data_folder, source_of

Misleading = Literal["reversed", "permuted"]
MISLEADING: tuple[Misleading, ...] = ("reversed", "permuted")
"""Change of the responses of test tasks: negated, or dealt out to other rows."""
Earlier = Literal["same", "fewer", "half-fewer", "narrow"]
EARLIER: tuple[Earlier, ...] = ("same", "fewer", "half-fewer", "narrow")
"""Search space of the past tasks, which have a quarter of their rows: the same; without one or two of the columns, in
all tasks or in every other one; or with half the range of these columns."""
_CENTRE = 0.5


def mislead(space: SearchSpace, how: Misleading) -> SearchSpace:
    """The search space with test tasks on which the past misleads; the other splits stay as they are.

    Args:
      space: a search space.
      how: one of `MISLEADING`.
    """
    one_of("how to mislead", how, MISLEADING)

    def changed(task: Task) -> Task:
        if how == "reversed":
            return replace(task, y=-task.y)
        random = np.random.default_rng([zlib.crc32(space.name.encode()), zlib.crc32(task.name.encode())])
        return replace(task, y=random.permutation(task.y))

    return replace(space, test={name: changed(task) for name, task in space.test.items()})


def earlier(space: SearchSpace, how: Earlier) -> SearchSpace:
    """The search space with past tasks of an earlier one; the test tasks stay as they are.

    A column that an earlier space did not have was near its centre: of these tasks the quarter of rows that is nearest
    is kept, with the centre as their value, and a further column says that the hyperparameter is absent.

    Args:
      space: a search space with descriptions of its columns.
      how: one of `EARLIER`.
    """
    one_of("earlier search space", how, EARLIER)
    assert space.columns is not None
    changed = _unconditional_numbers(space.columns)
    n_flags = len(changed) if "fewer" in how else 0

    def past(number: int, task: Task) -> Task:
        is_changed = how in ("fewer", "narrow") or (how == "half-fewer" and number % 2 == 0)
        random = np.random.default_rng([zlib.crc32(space.name.encode()), zlib.crc32(task.name.encode())])
        distance = np.abs(task.X[:, changed] - _CENTRE).max(axis=1)
        order = np.argsort(distance, kind="stable") if is_changed else random.permutation(task.n_rows)
        rows = np.sort(order[: task.n_rows // 4])
        x = task.X[rows]
        if is_changed and n_flags:
            x[:, changed] = _CENTRE
        return Task(task.name, _with_flags(x, n_flags, float(is_changed)), task.y[rows])

    def new(task: Task) -> Task:
        return replace(task, X=_with_flags(task.X, n_flags, 0.0))

    return SearchSpace(
        space.name,
        train={name: past(i, task) for i, (name, task) in enumerate(space.train.items())},
        test={name: new(task) for name, task in space.test.items()},
        designs={name: space.designs[name] for name in space.test},
    )


def _unconditional_numbers(columns: Sequence[Column]) -> list[int]:
    """One or two columns of numbers that no other column turns off."""
    conditional = {column.parent for column in columns if column.kind == "missing"}
    numbers = [i for i, one in enumerate(columns) if one.kind in ("float", "int") and one.parent not in conditional]
    return numbers[:2]


def _with_flags(x: npt.NDArray[np.float32], count: int, value: float) -> npt.NDArray[np.float32]:
    return np.hstack([x, np.full((len(x), count), value, np.float32)])


def _descriptor(source: Path, space: SearchSpace, how: Misleading | Earlier) -> dict[str, Any]:
    """The descriptor of a variant, with the further columns of `earlier`."""
    descriptor = read_descriptor(source, space.name)
    assert descriptor is not None
    assert space.columns is not None
    changed = _unconditional_numbers(space.columns) if "fewer" in how else []
    flags = [missing_column(space.columns[i].name) for i in changed]
    return {**descriptor, "variables_order": [*descriptor["variables_order"], *flags]}


def write_variant(data: str, out: Path, how: Misleading | Earlier) -> str:
    """A folder with misleading test tasks or past tasks of an earlier space, made unless it is there.

    Args:
      data: folder in HPO-B's layout, or `BUNDLED`.
      out: where the folder goes.
      how: see `mislead` and `earlier`.

    Returns:
      The folder's path.
    """
    folder = out / f"{source_of(data)}-{how}"
    if not folder.exists():  # written beside its place, then renamed: what is there is whole
        source, partial = data_folder(data), folder.with_name(f"{folder.name}.tmp")
        spaces = [load_space(source, name) for name in list_spaces(source)]
        shutil.rmtree(partial, ignore_errors=True)
        if how == "reversed" or how == "permuted":
            write_dataset(partial, [mislead(space, how) for space in spaces])
        else:
            write_dataset(partial, [earlier(space, how) for space in spaces])
        described = {space.name: _descriptor(source, space, how) for space in spaces if space.columns is not None}
        write_json(partial / f"{DESCRIPTORS}.json", described)
        partial.rename(folder)
    return str(folder)
