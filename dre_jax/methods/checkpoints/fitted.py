"""Checkpoints of methods that have learned: which method, how it is configured, on which columns, and what it learned.

A search space's folder holds one of two things, or both:

- ``FOLDER/fitted/``: a method with all that it learned, arrays and JSON, written by `save_fitted`;
- ``FOLDER/steps/``: the training of a ranking ensemble (`dre.checkpoint`), which may go on, and which is
  all of a method that learns nothing but an ensemble.

A fitted method counts before the training of its ensemble, which may have gone on since. The training may also be of
an ensemble that stands beside the method (`Entry.beside`), and counts for those who ask for one. Arrays lie flat, by
their paths, and the structure beside them (`as_json`); nothing of the data is needed to read them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax import native
from dre_jax.data import SearchSpace, fingerprint
from dre_jax.data.columns import Column, differing_columns
from dre_jax.data.files import make_folder, remove_left_over, write_json
from dre_jax.errors import CheckpointError, ConfigError, DataError
from dre_jax.methods.checkpoints.serialization import (
    config_from_json,
    config_to_json,
    structure_from_json,
    structure_to_json,
)
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.registry import METHODS
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, members_of

FORMAT = 1
_FITTED, _STEPS = "fitted", "steps"
_TRAINING = ("step", "best_step", "fingerprint", "key", "versions", "backends")
_SHOWN = 8  # differences that a message names


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """A method that has learned from the past tasks of a search space."""

    name: str
    """The method's, as in `METHODS`."""
    method: Method
    """Its configuration."""
    params: Any
    """The parameters that `fit` returned: a tree of arrays. None where only the description was read."""
    space: str
    """Name of the search space."""
    n_columns: int
    """D"""
    columns: tuple[Column, ...] | None = None
    """Descriptions of the columns, where they are known."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Origin: data, key and versions, see `facts_of`; of an ensemble's training its "step" too."""
    extra: dict[str, Any] = field(default_factory=dict)
    """JSON that whoever saved it keeps with it."""


class Ensemble(NamedTuple):
    """A ranking ensemble inside of a method."""

    member: int | None
    """Which member of a committee has it; None where the method itself does."""
    model: ModelConfig
    training: MetaTrainConfig


def facts_of(meta: SearchSpace, key: Array) -> dict[str, Any]:
    """Facts on what a method learns from and what computes it, for `Fitted.facts`.

    Args:
      meta: the search space.
      key: PRNG key of `fit`.
    """
    from dre_jax.methods.dre.trainer import versions

    return {
        "fingerprint": fingerprint(meta),
        "tasks": list(meta.train),
        "key": [int(word) for word in jax.random.key_data(key).ravel()],
        "versions": versions(),
        "backends": native.with_backend([]),
    }


def save_fitted(folder: str | Path, fitted: Fitted) -> None:
    """Writes a fitted method; one that is there is replaced at once, and stays where this process is killed.

    Args:
      folder: the search space's; ``metadata.json`` in it is a copy for people.
      fitted: with a configuration of the classes that the registry's methods have.

    Raises:
      CheckpointError: for parameters or a configuration of other classes, or where the folder cannot be written.
    """
    from dre_jax.methods.checkpoints.storage import Steps

    params = jax.tree.map(_as_array, fitted.params)
    structure, arrays = structure_to_json(params), by_path(params)
    if fitted.name not in METHODS or not arrays:
        raise CheckpointError(f"a method must be registered and have learned something, but got {fitted.name!r}")
    columns = None if fitted.columns is None else [list(column) for column in fitted.columns]
    metadata = {
        "format": FORMAT,
        "method": fitted.name,
        "configuration": config_to_json(fitted.method),
        "space": fitted.space,
        "columns": fitted.n_columns,
        "schema": columns,
        "facts": fitted.facts,
        "extra": fitted.extra,
    }
    steps = Steps(Path(folder) / _FITTED, keep=1)
    try:
        make_folder(folder)
        remove_left_over(Path(folder) / "metadata.json")
        steps.save((steps.latest() or 0) + 1, arrays, {**metadata, "structure": structure})
        write_json(Path(folder) / "metadata.json", metadata, indent=1)
    except DataError as error:
        raise CheckpointError(f"cannot write a checkpoint to {folder}: {error}") from error


def is_there(folder: str | Path) -> bool:
    """Returns whether a folder holds a checkpoint."""
    if not any((Path(folder) / name).is_dir() for name in (_FITTED, _STEPS)):
        return False
    from dre_jax.methods.dre.checkpoint import Checkpoint

    return _fitted_step(folder) is not None or Checkpoint(folder).latest_step() is not None


def is_fitted(folder: str | Path, *, ensemble: bool = False) -> bool:
    """Returns whether what `describe` tells of is what `save_fitted` wrote, and not the training of an ensemble."""
    if _fitted_step(folder) is None:
        return False
    return not (ensemble and _has_beside(folder, describe(folder)))


def _has_beside(folder: str | Path, found: Fitted) -> bool:
    """Returns whether the training of an ensemble stands beside the fitted method, and is not a part of it."""
    return METHODS[found.name].beside is not None and (Path(folder) / _STEPS).is_dir()


def describe(
    folder: str | Path,
    *,
    space: str | None = None,
    columns: Sequence[Column] | int | None = None,
    ensemble: bool = False,
) -> Fitted:
    """The description in a checkpoint, without its parameters; arguments and errors as of `load_fitted`."""
    return _read(folder, space, columns, ensemble, with_params=False)


def load_fitted(
    folder: str | Path,
    *,
    space: str | None = None,
    columns: Sequence[Column] | int | None = None,
    ensemble: bool = False,
) -> Fitted:
    """Reads a fitted method, or the training of a ranking ensemble as the method it is for, `dre` unless it says more.

    Args:
      folder: the search space's, where `save_fitted`, or the trainer of ensembles, wrote.
      space: refuse another search space's.
      columns: refuse other columns; or their number, which is all that is compared where one side knows no more.
      ensemble: read the training of the ensemble beside the method, where there is one (`Entry.beside`).

    Raises:
      CheckpointError: where there is none, it is damaged or of another version, or does not fit; a line that says why.
    """
    return _read(folder, space, columns, ensemble, with_params=True)


def find_ensemble(method: Method) -> Ensemble | None:
    """The ranking ensemble that a method trains: its own, or that of the first member of a committee that has one.

    Example:
      >>> found = find_ensemble(METHODS["committee"].make())
      >>> found.member, found.model.members
      (0, 10)
    """
    for member, one in ((None, method), *enumerate(members_of(method))):
        model, training = getattr(one, "model", None), getattr(one, "training", None)
        learns = getattr(one, "transfer", True)
        if learns and isinstance(model, ModelConfig) and isinstance(training, MetaTrainConfig):
            return Ensemble(member, model, training)
    return None


def ensemble_params(fitted: Fitted) -> EnsembleParams:
    """The parameters of the ranking ensemble in a fitted method. Raises `CheckpointError` where it has none."""
    ensemble = find_ensemble(fitted.method)
    if ensemble is None:
        raise CheckpointError(f"{fitted.name} has no ranking ensemble")
    params: EnsembleParams = fitted.params if ensemble.member is None else fitted.params[ensemble.member]
    return params


_Columns = Sequence[Column] | int | None


def _read(folder: str | Path, space: str | None, columns: _Columns, ensemble: bool, *, with_params: bool) -> Fitted:
    found = _open(folder, ensemble, with_params)
    problems = [] if space in (None, found.space) else [f"space ({space} here, {found.space} in the checkpoint)"]
    problems += _differing(columns, found)
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise CheckpointError(f"the checkpoint in {folder} does not fit: {'; '.join(problems[:_SHOWN])}{more}")
    return found


def _open(folder: str | Path, ensemble: bool, with_params: bool) -> Fitted:
    step = _fitted_step(folder)
    try:
        if step is None:
            return _ensemble(folder, with_params)
        found = _fitted(folder, step, with_params)
        return _ensemble(folder, with_params) if ensemble and _has_beside(folder, found) else found
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        why = str(error) if isinstance(error, ConfigError) else repr(error)
        raise CheckpointError(f"the checkpoint in {folder} is not this version's: {why}") from error
    except CheckpointError:
        if _fitted_step(folder) == step:
            raise
    return _open(folder, ensemble, with_params)  # another process has replaced it while it was read


def _differing(ours: _Columns, found: Fitted) -> list[str]:
    """Differences between columns at hand and those of a checkpoint, a phrase each."""
    if ours is None:
        return []
    if not isinstance(ours, int) and found.columns is not None:
        return differing_columns(ours, found.columns)
    number = ours if isinstance(ours, int) else len(ours)
    return [] if number == found.n_columns else [f"columns ({number} here, {found.n_columns} in the checkpoint)"]


def _fitted_step(folder: str | Path) -> int | None:
    """Number of the fitted method in a folder; None without."""
    if not (Path(folder) / _FITTED).is_dir():
        return None
    from dre_jax.methods.checkpoints.storage import Steps

    return Steps(Path(folder) / _FITTED, keep=1).latest()


def _fitted(folder: str | Path, step: int, with_params: bool) -> Fitted:
    from dre_jax.methods.checkpoints.storage import Steps

    steps = Steps(Path(folder) / _FITTED, keep=1)
    said = steps.metadata(step)
    if said.get("format") != FORMAT:
        raise CheckpointError(f"{folder} must hold a checkpoint of format {FORMAT}, but holds {said.get('format')!r}")
    fitted = Fitted(
        name=_known(said["method"], folder),
        method=config_from_json(said["configuration"]),
        params=None,
        space=said["space"],
        n_columns=said["columns"],
        columns=columns_from_json(said["schema"]),
        facts=said["facts"],
        extra=said["extra"],
    )
    if type(fitted.method) is not type(METHODS[fitted.name].default):
        raise CheckpointError(f"{fitted.name} in {folder} is configured as {type(fitted.method).__name__}")
    if not with_params:
        return fitted
    like = structure_from_json(said["structure"])
    arrays = steps.arrays(step, by_path(like))
    names, structure = list(by_path(like)), jax.tree.structure(like)
    read = dataclasses.replace(fitted, params=jax.tree.unflatten(structure, [arrays[name] for name in names]))
    _check_usable(read, folder)
    return read


def _ensemble(folder: str | Path, with_params: bool) -> Fitted:
    """The training of an ensemble, as a method: the one that it says it is for, where that learns nothing else."""
    from dre_jax.methods.dre.checkpoint import Checkpoint, load_params, model_config, training_config

    params, said = load_params(folder) if with_params else (None, Checkpoint(folder).metadata())
    model, training = model_config(said), training_config(said)
    told = said.get("method") or {}
    is_all = bool(told) and told["member"] is None
    name = _known(told["name"], folder) if is_all else "dre"
    method: Any = config_from_json(told["configuration"]) if is_all else METHODS[name].default
    facts: dict[str, Any] = {name: said[name] for name in _TRAINING if name in said}
    facts |= {"losses": said["history"][-1]} if said.get("history") else {}
    if told:
        facts |= {"tasks": told["tasks"]} | ({} if is_all else {"part_of": told["name"]})
    return Fitted(
        name=name,
        method=dataclasses.replace(method, model=model, training=training),
        params=params,
        space=said["space"],
        n_columns=said["columns"],
        columns=columns_from_json(said.get("schema")),
        facts=facts,
        extra=told.get("extra", {}),
    )


def _known(name: Any, folder: str | Path) -> str:
    if name not in METHODS:
        raise CheckpointError(f"the checkpoint in {folder} is of a method that this version does not know, {name!r}")
    return str(name)


def columns_from_json(given: Any) -> tuple[Column, ...] | None:
    """Columns as they lie in a checkpoint: a list of their fields each; None where they are not known."""
    return None if given is None else tuple(Column(*column) for column in given)


def _as_array(leaf: Any) -> Any:
    """Arrays of NumPy as JAX's, whose dtypes they will have when they are read; all else is refused later."""
    return jax.device_put(leaf) if hasattr(leaf, "shape") and hasattr(leaf, "tolist") else leaf


def by_path(tree: Any) -> dict[str, Any]:
    """Leaves by their paths, so that the files say what each array is."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _check_usable(fitted: Fitted, folder: str | Path) -> None:
    """Refuses parameters of another version of dre_jax that the method of this one cannot compute with.

    Nothing is computed: the method is traced, with a history and candidates of one row.
    """
    from dre_jax.methods.dre.trainer import versions

    if fitted.facts.get("versions", {}).get("dre_jax") == versions()["dre_jax"]:
        return
    row, filled = jnp.zeros((1, fitted.n_columns)), jnp.ones(1, bool)
    history = History(row, jnp.zeros(1), jnp.zeros(1, jnp.int32), filled)

    def acquire(params: Any) -> Array:
        return fitted.method.acquire(params, history, Candidates(row, filled), jax.random.key(0))

    try:
        jax.eval_shape(acquire, fitted.params)
    except Exception as error:  # whatever a method does with arrays that are not its own
        raise CheckpointError(f"the parameters in {folder} are not this version's: {error}") from error
