"""Surrogates in checkpoints: what `Surrogate.save` adds to a method's checkpoint, and how it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_jax.data.columns import DESCRIPTORS, differing_columns
from dre_jax.errors import CheckpointError, ConfigError, DataError, DreError
from dre_jax.tuning.space.descriptors import from_descriptor
from dre_jax.tuning.space.hpob import HPOB_SPACES, from_hpob
from dre_jax.tuning.space.json_format import from_json, to_json
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.trial import DIRECTIONS

if TYPE_CHECKING:
    from dre_jax.methods.checkpoints.fitted import FittedMethod
    from dre_jax.tuning.past.studies import PastStudies

SPACE_NAME = "past"
"""Name of the search space in the checkpoint of a surrogate."""
_Path = str | os.PathLike[str]


def checkpoint_extra(
    space: Space, start: Sequence[Params], direction: str | None, metric: str | None, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the entries of a checkpoint that `Surrogate.load` needs beside the method.

    Args:
      space: the search space.
      start: the start design.
      direction: of the past values.
      metric: their name.
      names: of the past studies, whose arrays the checkpoint has.
    """
    content = {"space": to_json(space), "start": list(start), "direction": direction, "metric": metric}
    return {"tuning": content | ({"studies": list(names)} if names else {})}


def read_surrogate(folder: _Path, space: Space | None) -> dict[str, Any]:
    """Returns the fields of the surrogate in a checkpoint; arguments and errors as in `Surrogate.load`."""
    import jax

    from dre_jax.methods.checkpoints.fitted import load_fitted

    fitted = load_fitted(Path(folder))
    is_surrogate = "tuning" in fitted.extra
    own_space, start = _saved_space(folder, fitted) if is_surrogate else _space_of_data(folder, fitted, space)
    if space is not None:
        own_space.require_encodes(space)
    direction, metric = _saved_direction(folder, fitted)
    return {
        "space": own_space,
        "name": fitted.name,
        "method": fitted.method,
        "params": jax.tree.map(np.asarray, fitted.params),
        "start": start,
        "facts": fitted.facts,
        "direction": direction,
        "metric": metric,
        "path": os.path.abspath(folder),
        "studies": _saved_studies(folder, fitted),
    }


def _saved_direction(folder: _Path, fitted: FittedMethod) -> tuple[str | None, str | None]:
    """Returns the direction and the metric in a checkpoint; meta-datasets hold responses, which have none."""
    content = fitted.extra.get("tuning")
    if content is None:
        return None, None
    direction, metric = content["direction"], content["metric"]
    if direction not in (None, *DIRECTIONS) or not (metric is None or isinstance(metric, str)):
        raise CheckpointError(f"the direction of the surrogate in {folder} is not this version's: {direction!r}")
    return direction, metric


def _saved_studies(folder: _Path, fitted: FittedMethod) -> PastStudies | None:
    """Returns the past studies in a checkpoint; None if it has none."""
    from dre_jax.tuning.past.studies import PastStudies

    if not fitted.extra_arrays:
        return None
    try:
        return PastStudies.from_arrays(tuple(map(str, fitted.extra["tuning"]["studies"])), fitted.extra_arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the past studies in {folder} are not this version's: {error!r}") from error


def _saved_space(folder: _Path, fitted: FittedMethod) -> tuple[Space, tuple[Params, ...]]:
    """Returns the space and the start design that `Surrogate.save` wrote."""
    try:
        content = fitted.extra["tuning"]
        space = from_json(content["space"])
        return space, tuple(space.check_part(params) for params in content["start"])
    except (KeyError, TypeError, ConfigError, DataError) as error:
        reason = error if isinstance(error, DreError) else repr(error)
        raise CheckpointError(f"the space of the surrogate in {folder} is not this version's: {reason}") from error


def _space_of_data(folder: _Path, fitted: FittedMethod, space: Space | None) -> tuple[Space, tuple[Params, ...]]:
    """Returns the space of a checkpoint of `dre-jax meta-train`, from the data's descriptor or from the argument."""
    if fitted.columns is None:
        rule = f"data that a surrogate learned from must come with a {DESCRIPTORS}.json"
        raise CheckpointError(f"{rule}, but those of the checkpoint in {folder} did not: its columns have no names")
    descriptor = fitted.extra.get("descriptor")
    try:
        described = space if descriptor is None else of_descriptor(fitted.space, descriptor)
    except (DataError, ConfigError):  # columns alone
        described = space
    if described is None:
        names = ", ".join(dict.fromkeys(column.parent for column in fitted.columns))
        raise CheckpointError(f"the checkpoint in {folder} has no ranges of its hyperparameters, {names}: give space=")
    differences = differing_columns(described.columns, fitted.columns)
    if differences:
        raise CheckpointError(f"the checkpoint in {folder} is of another space: {'; '.join(differences)}")
    return described, tuple(described.decode(row) for row in fitted.extra.get("start_rows", ()))


def of_descriptor(name: str, descriptor: Mapping[str, Any]) -> Space:
    """Returns the space of a descriptor; HPO-B's spaces are known by their names.

    Raises:
      DataError: if the descriptor is incomplete.
    """
    return from_hpob(name, descriptor) if name in HPOB_SPACES else from_descriptor(descriptor)
