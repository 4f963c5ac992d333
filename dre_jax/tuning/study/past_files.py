"""Surrogates of past studies in files: of study files, a table, or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dre_jax.errors import DataError
from dre_jax.space.space import Space
from dre_jax.tuning.past.tables import from_csv
from dre_jax.tuning.past.tasks import Past, past_of
from dre_jax.tuning.study.study_file import read_study
from dre_jax.tuning.surrogates.surrogate import Surrogate


def surrogate_from_files(paths: Mapping[str, Path], space: Space, direction: str, save_as: Path) -> Surrogate:
    """Returns the surrogate for a new study of past studies: a checkpoint as it is, or one that learns from files.

    Args:
      paths: files of past studies by name, as `Optimizer.save` writes them; or one checkpoint, a folder or ``.npz``; or
        one table, ``.csv`` or ``.csv.gz``, with the columns ``task``, ``value`` and the hyperparameters.
      space: of the new study.
      direction: of all studies.
      save_as: where the checkpoint of a surrogate that learns is written.

    Raises:
      DataError: for files that are none of these, and for past studies of another direction or several objectives; and
        as `Surrogate.fit`, `Surrogate.load` and `from_csv`.
    """
    path = next(iter(paths.values()))
    if len(paths) == 1 and (path.is_dir() or path.suffix == ".npz"):
        return Surrogate.load(path, space=space)
    return Surrogate.fit(_read_past(paths, space, direction)).save(save_as)


def _read_past(paths: Mapping[str, Path], space: Space, direction: str) -> Past:
    path = next(iter(paths.values()))
    if len(paths) == 1 and path.name.endswith((".csv", ".csv.gz")):
        return from_csv(path, space, direction=direction)
    studies: dict[str, Any] = {name: read_study(path) for name, path in paths.items()}
    for name, study in studies.items():
        if dict(study.objectives) != {"value": direction}:
            rule = f"past studies must {direction} one value, as the new study"
            raise DataError(f"{rule}, but {name!r} has the directions {dict(study.objectives)}")
    return past_of(space, studies, direction=direction)
