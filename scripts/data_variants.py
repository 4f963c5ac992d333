"""Data made from data: test tasks on which the past misleads."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from dre_jax.checks import one_of
from dre_jax.data import SearchSpace, Task, list_spaces, load_space, write_dataset
from dre_jax.data.columns import DESCRIPTORS, read_descriptor
from dre_jax.data.files import write_json
from dre_jax.hpob.jobs import data_folder, source_of

Misleading = Literal["reversed", "permuted"]
MISLEADING: tuple[Misleading, ...] = ("reversed", "permuted")
"""Change of the responses of test tasks: negated, or dealt out to other rows."""


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


def write_variant(data: str, out: Path, how: Misleading) -> str:
    """A folder with misleading test tasks, made unless it is there.

    Args:
      data: folder in HPO-B's layout, or `BUNDLED`.
      out: where the folder goes.
      how: see `mislead`.

    Returns:
      The folder's path.
    """
    folder = out / f"{source_of(data)}-{how}"
    if not folder.exists():  # written beside its place, then renamed: what is there is whole
        source, partial = data_folder(data), folder.with_name(f"{folder.name}.tmp")
        spaces = [load_space(source, name) for name in list_spaces(source)]
        shutil.rmtree(partial, ignore_errors=True)
        write_dataset(partial, [mislead(space, how) for space in spaces])
        described = {space.name: read_descriptor(source, space.name) for space in spaces if space.columns is not None}
        write_json(partial / f"{DESCRIPTORS}.json", described)
        partial.rename(folder)
    return str(folder)
