"""Checkpoints of fitted methods: the method, its configuration, the columns, and the learned parameters.

The folder of a search space holds one of these, or both:

- ``FOLDER/fitted/``: a method with all that it learned, written by `save_fitted`;
- ``FOLDER/steps/``: the training of a ranking ensemble (`training`), which can be resumed.

A fitted method takes precedence over the training of its companion (`Entry.companion`), which
``load_fitted(ensemble=True)`` reads. Arrays are stored flat, by their paths, and their structure as JSON, so that no
data is needed to read them. A path that ends in ``.npz`` is one file with a fitted method instead (`archive`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data.columns import Column, differing_columns
from dre_jax.errors import CheckpointError
from dre_jax.methods.checkpoints.archive import is_archive, read_archive, write_archive
from dre_jax.methods.checkpoints.provenance import check_version, differences, versions
from dre_jax.methods.checkpoints.serialization import (
    config_from_json,
    config_to_json,
    has_numbers,
    structure_from_json,
    structure_to_json,
)
from dre_jax.methods.checkpoints.storage import Steps
from dre_jax.methods.checkpoints.training import STEPS, TrainingCheckpoint, columns_from_json, training_configs
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.foreign import is_foreign
from dre_jax.methods.registry import METHODS, registered_entry
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, learns_from_past


def has_ensemble(method: Any) -> bool:
    """Returns whether a method trains a ranking ensemble: `model` and `training` are its configuration.

    Example:
      >>> [has_ensemble(METHODS[name].default) for name in ("dre", "dre-ri", "fsbo")]
      [True, False, False]
    """
    configs = getattr(method, "model", None), getattr(method, "training", None)
    return learns_from_past(method) and all(map(isinstance, configs, (ModelConfig, MetaTrainConfig)))


_TRAINING_FACTS = ("step", "best_step", "fingerprint", "key", "versions", "backends")
_MAX_DIFFERENCES = 8  # that a message names
_EXTRA = "extra arrays:"  # before their paths; those of parameters are names of fields


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMethod:
    """A method that has learned from the past tasks of a search space."""

    name: str
    """The method's, as in `METHODS`."""
    method: Method
    """Its configuration."""
    params: Any
    """The parameters that `fit` returned, a tree of arrays; None if only the description was read."""
    space: str
    """Name of the search space."""
    n_columns: int
    """D"""
    columns: tuple[Column, ...] | None = None
    """Descriptions of the columns, where they are known."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Origin, see `provenance`; for the training of an ensemble also its "step"."""
    extra: dict[str, Any] = field(default_factory=dict)
    """JSON of the caller that saved it."""
    extra_arrays: dict[str, Any] = field(default_factory=dict)
    """Arrays of the caller that saved it, by name; empty if only the description was read."""


def save_fitted(folder: str | Path, fitted_method: FittedMethod) -> None:
    """Writes a fitted method; an older one is replaced in one step, and stays if this process is killed.

    Args:
      folder: the search space's; ``metadata.json`` in it is a copy for people. Or a file, ``NAME.npz``.
      fitted_method: with a configuration of the classes that the registry's methods have.

    Raises:
      CheckpointError: for parameters or a configuration of other classes, or if the folder cannot be written.
    """
    structure, arrays = structure_to_json(jax.tree.map(_to_jax, fitted_method.params))
    if fitted_method.name not in METHODS or not arrays:
        raise CheckpointError(f"a method must be registered and have learned something, but got {fitted_method.name!r}")
    metadata = {
        "method": fitted_method.name,
        "configuration": config_to_json(fitted_method.method),
        "space": fitted_method.space,
        "columns": fitted_method.n_columns,
        "schema": fitted_method.columns,
        "facts": fitted_method.facts,
        "extra": fitted_method.extra,
    }
    stored_metadata = {**metadata, "structure": structure}
    if fitted_method.extra_arrays:
        stored_metadata["extra_structure"], extra_arrays = structure_to_json(fitted_method.extra_arrays)
        arrays |= {f"{_EXTRA}{path}": array for path, array in extra_arrays.items()}
    if is_archive(folder):
        write_archive(folder, arrays, stored_metadata)
        return
    steps = _fitted_steps(folder)
    steps.save((steps.latest() or 0) + 1, arrays, stored_metadata, {"metadata.json": metadata})


def has_checkpoint(folder: str | Path) -> bool:
    """Returns whether a folder holds a checkpoint."""
    return _fitted_steps(folder).latest() is not None or TrainingCheckpoint(folder).latest_step() is not None


def has_fitted(folder: str | Path, *, ensemble: bool = False) -> bool:
    """Returns whether `load_fitted` reads a method that `save_fitted` wrote, not the training of an ensemble."""
    return is_archive(folder) or _fitted_step(folder, ensemble) is not None


def load_fitted(
    folder: str | Path,
    *,
    space: str | None = None,
    columns: Sequence[Column] | int | None = None,
    ensemble: bool = False,
    with_params: bool = True,
) -> FittedMethod:
    """Reads a fitted method, or the training of a ranking ensemble as its method, `dre` by default.

    Args:
      folder: the search space's, where `save_fitted`, or the trainer of ensembles, wrote; or a file, ``NAME.npz``.
      space: refuse another search space's.
      columns: refuse other columns; or their number. Only numbers are compared if one side has no descriptions.
      ensemble: read the training of the method's companion, if there is one (`Entry.companion`).
      with_params: False reads the description alone.

    Raises:
      CheckpointError: if there is none, or it is damaged, of another version, or does not fit.
    """
    latest = _fitted_steps(folder).latest()
    try:
        with check_version(folder):
            fitted_method = _read(folder, ensemble, with_params)
    except CheckpointError:
        if _fitted_steps(folder).latest() == latest:
            raise
        # Another process replaced it while it was read.
        return load_fitted(folder, space=space, columns=columns, ensemble=ensemble, with_params=with_params)
    phrases = [] if space is None else differences({"space": space}, {"space": fitted_method.space})
    if columns is not None and not isinstance(columns, int) and fitted_method.columns is not None:
        phrases += differing_columns(columns, fitted_method.columns)
    elif columns is not None:
        number = columns if isinstance(columns, int) else len(columns)
        phrases += differences({"columns": number}, {"columns": fitted_method.n_columns})
    if phrases:
        n_omitted = len(phrases) - _MAX_DIFFERENCES
        text = "; ".join([*phrases[:_MAX_DIFFERENCES], *([f"and {n_omitted} more"] if n_omitted > 0 else [])])
        raise CheckpointError(f"the checkpoint in {folder} does not fit: {text}")
    return fitted_method


def _fitted_steps(folder: str | Path) -> Steps:
    return Steps(Path(folder) / "fitted", keep=1)


def _fitted_step(folder: str | Path, ensemble: bool) -> int | None:
    """Returns the number of the fitted method; None if there is none, or the training of an ensemble counts."""
    steps = _fitted_steps(folder)
    step = steps.latest()
    if step is None or not ensemble or not (Path(folder) / STEPS).is_dir():
        return step
    name = steps.metadata(step).get("method")
    return None if name in METHODS and METHODS[name].companion is not None else step


def _read(folder: str | Path, ensemble: bool, with_params: bool) -> FittedMethod:
    if is_archive(folder):
        metadata, arrays = read_archive(folder)
        return _read_method(folder, metadata, (lambda _: jax.device_put(arrays)) if with_params else None)
    step, steps = _fitted_step(folder, ensemble), _fitted_steps(folder)
    if step is None:
        return _read_training(folder, with_params)
    return _read_method(folder, steps.metadata(step), partial(steps.arrays, step) if with_params else None)


def _read_method(
    folder: str | Path, metadata: dict[str, Any], read_arrays: Callable[[Mapping[str, Any]], Any] | None
) -> FittedMethod:
    """Returns the method that metadata describe; without parameters if no function reads their arrays."""
    checkpoint = FittedMethod(
        name=_check_name(metadata["method"], folder),
        method=config_from_json(metadata["configuration"]),
        params=None,
        space=metadata["space"],
        n_columns=metadata["columns"],
        columns=columns_from_json(metadata["schema"]),
        facts=metadata["facts"],
        extra=metadata["extra"],
    )
    if type(checkpoint.method) is not type(METHODS[checkpoint.name].default):
        raise CheckpointError(f"{checkpoint.name} in {folder} is configured as {type(checkpoint.method).__name__}")
    if read_arrays is None:
        return checkpoint
    shapes: dict[str, Any] = {}
    structure_from_json(metadata["structure"], shapes.setdefault)
    extra = metadata.get("extra_structure")  # those that ship have none
    if extra is not None:
        structure_from_json(extra, lambda path, shape: shapes.setdefault(f"{_EXTRA}{path}", shape))
    arrays = read_arrays(shapes)
    params = structure_from_json(metadata["structure"], lambda path, _: arrays[path])
    extra_arrays = structure_from_json(extra, lambda path, _: arrays[f"{_EXTRA}{path}"]) or {}
    checkpoint = dataclasses.replace(checkpoint, params=params, extra_arrays=extra_arrays)
    _check_params(checkpoint, folder)
    return checkpoint


def _read_training(folder: str | Path, with_params: bool) -> FittedMethod:
    """Reads the training of an ensemble as its method, or as `dre` if the metadata name none."""
    checkpoint = TrainingCheckpoint(folder)
    metadata = checkpoint.metadata()
    params = checkpoint.load(metadata).params if with_params else None
    model, training = training_configs(metadata)
    owner = metadata.get("method") or {}  # the trainer alone names none
    name = _check_name(owner["name"], folder) if owner else "dre"
    method: Any = config_from_json(owner["configuration"]) if owner else METHODS[name].default
    facts: dict[str, Any] = {name: metadata[name] for name in _TRAINING_FACTS if name in metadata}
    facts |= {"losses": metadata["history"][-1]} if metadata.get("history") else {}
    facts |= {"tasks": owner["tasks"]} if owner else {}
    return FittedMethod(
        name=name,
        method=dataclasses.replace(method, model=model, training=training),
        params=params,
        space=metadata["space"],
        n_columns=metadata["columns"],
        columns=columns_from_json(metadata["schema"]),
        facts=facts,
        extra=owner.get("extra", {}),
    )


def _check_name(name: Any, folder: str | Path) -> str:
    if registered_entry(str(name)) is None:  # no name in a file makes this import anything but an entry point
        rule = f"the checkpoint in {folder} is of a method that this version does not know, {name!r}"
        outside = ": load it first, by --method or dre_jax.methods.find" if is_foreign(str(name)) else ""
        raise CheckpointError(f"{rule}{outside}")
    return str(name)


def _to_jax(leaf: Any) -> Any:
    """Returns an array of NumPy as one of JAX, with the dtype that it will have when read; other leaves unchanged."""
    return jax.device_put(leaf) if isinstance(leaf, np.ndarray | np.generic) and has_numbers(leaf) else leaf


def _check_params(fitted_method: FittedMethod, folder: str | Path) -> None:
    """Raises `CheckpointError` for parameters of another version that the method of this one cannot compute with.

    Nothing is computed: the method is traced, with a history and candidates of one row.
    """
    if fitted_method.facts.get("versions", {}).get("dre_jax") == versions()["dre_jax"]:
        return
    row, where = jnp.zeros((1, fitted_method.n_columns)), jnp.ones(1, bool)
    history = History(row, jnp.zeros(1), jnp.zeros(1, jnp.int32), where)

    def acquire(params: Any) -> Array:
        return fitted_method.method.acquire(params, history, Candidates(row, where), jax.random.key(0))

    try:
        jax.eval_shape(acquire, fitted_method.params)
    except Exception as error:  # whatever a method does with arrays that are not its own
        raise CheckpointError(f"the parameters in {folder} are not this version's: {error}") from error
