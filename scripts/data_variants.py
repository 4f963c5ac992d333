"""Data made from data: folds over past tasks, and test tasks on which the past misleads."""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dre_jax.checks import one_of
from dre_jax.data import Results, SearchSpace, Task, list_spaces, load_space, write_dataset
from dre_jax.data.columns import DESCRIPTORS
from dre_jax.errors import ConfigError
from dre_jax.hpob.jobs import data_folder, source_of

Misleading = Literal["reversed", "permuted"]
MISLEADING: tuple[Misleading, ...] = ("reversed", "permuted")
"""Change of the responses of test tasks: negated, or dealt out to other rows."""
_DESIGNS, _ROWS = 5, 5
_FOLD = re.compile(r"-fold-\d+-of-\d+(?=/)")


def fold(space: SearchSpace, number: int, of: int) -> SearchSpace:
    """A fold of the training and validation tasks together: its tasks are for testing, all others keep their split.

    So whatever looks at validation tasks while it learns sees none of those that are held out. Tasks are dealt out by
    name. One without initial designs gets five of five rows, drawn by its name.

    Args:
      space: its own test tasks are left out.
      number: of the fold, from 0.
      of: how many folds there are.

    Raises:
      ConfigError: for fewer than two folds, a number that is not one of them, or more folds than tasks.
    """
    tasks = {**space.train, **space.validation}
    if not 2 <= of <= len(tasks) or not 0 <= number < of:
        rule = f"folds must be 2 to {len(tasks)}, as many as {space.name!r} has tasks"
        raise ConfigError(f"{rule}, and be numbered from 0, but got fold {number} of {of}")
    order = sorted(tasks, key=lambda name: (zlib.crc32(name.encode()), name))
    held_out = set(order[number::of])
    return SearchSpace(
        space.name,
        train={name: task for name, task in space.train.items() if name not in held_out},
        validation={name: task for name, task in space.validation.items() if name not in held_out},
        test={name: tasks[name] for name in sorted(held_out)},
        designs={name: space.designs.get(name) or _designs(space.name, task) for name, task in tasks.items()},
        columns=space.columns,
    )


def _designs(space: str, task: Task) -> dict[str, npt.NDArray[np.int64]]:
    random = np.random.default_rng([zlib.crc32(space.encode()), zlib.crc32(task.name.encode())])
    rows = min(_ROWS, task.n_rows)
    return {f"test{i}": random.choice(task.n_rows, rows, replace=False).astype(np.int64) for i in range(_DESIGNS)}


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


def write_folds(data: str, out: Path, n: int) -> list[str]:
    """Folders of all folds of a folder's search spaces, made unless they are there.

    Args:
      data: a folder in HPO-B's layout, or `BUNDLED`.
      out: where the folders go.
      n: how many folds.

    Raises:
      ConfigError: as `fold`.
    """
    return [_write(data, out / f"{source_of(data)}-fold-{i + 1}-of-{n}", _fold_of(i, n)) for i in range(n)]


def unfold(results: Results) -> Results:
    """Results that `collect` has of the folders of folds, under the labels of the search spaces that were folded."""
    traces: dict[str, dict[str, Mapping[str, npt.NDArray[np.float64]]]] = {}
    for label, datasets in results.traces.items():
        traces.setdefault(_FOLD.sub("", label), {}).update(datasets)
    return replace(results, traces=traces)


def _fold_of(number: int, of: int) -> Callable[[SearchSpace], SearchSpace]:
    return lambda space: fold(space, number, of)


def write_misleading(data: str, out: Path, how: Misleading) -> str:
    """A folder with misleading test tasks, made unless it is there.

    Args:
      data: folder in HPO-B's layout, or `BUNDLED`.
      out: where the folder goes.
      how: see `mislead`.

    Returns:
      The folder's path.
    """
    return _write(data, out / f"{source_of(data)}-{how}", lambda space: mislead(space, how))


def _write(data: str, folder: Path, change: Callable[[SearchSpace], SearchSpace]) -> str:
    """Beside its place, then renamed: what is there is whole."""
    if not folder.exists():
        source, partial = data_folder(data), folder.with_name(f"{folder.name}.tmp")
        shutil.rmtree(partial, ignore_errors=True)
        write_dataset(partial, [change(load_space(source, name)) for name in list_spaces(source)])
        for descriptors in source.glob(f"{DESCRIPTORS}.json*"):
            shutil.copy(descriptors, partial)
        partial.rename(folder)
    return str(folder)
