"""Checkpoints of fitted methods: the method, its configuration, the columns, and the learned parameters.

The folder of a search space holds one of these, or both:

- ``FOLDER/fitted/``: a method with all that it learned, written by `save_fitted`;
- ``FOLDER/steps/``: the training of a ranking ensemble (`dre.training_checkpoint`), which can be resumed.

A fitted method takes precedence over the training of its companion (`Entry.companion`), which
``load_fitted(ensemble=True)`` reads. The configuration is JSON, and arrays are stored flat, by their paths in the tree
that `fit` returns (`parameters`). A path that ends in ``.npz`` is one file with a fitted method instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from dre_jax.data.columns import Column, differing_columns
from dre_jax.errors import CheckpointError
from dre_jax.methods.checkpoints.parameters import abstract_params, check_storable
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.training_checkpoint import STEPS, TrainingCheckpoint, columns_from_json
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.entries.settings import config_to_json
from dre_jax.methods.foreign import is_foreign
from dre_jax.methods.registry import companion_of, registered_entry
from dre_jax.methods.storage.archive import is_archive, read_archive, write_archive
from dre_jax.methods.storage.provenance import check_version, differences
from dre_jax.methods.storage.steps import Steps
from dre_jax.methods.storage.trees import flatten, rename, restore
from dre_jax.search.method import Method, learns_from_past


def has_ensemble(method: Any) -> bool:
    """Returns whether a method trains a ranking ensemble: `model` and `training` are its configuration.

    Example:
      >>> from dre_jax.methods import find
      >>> [has_ensemble(find(name).default) for name in ("dre", "dre-ri", "fsbo")]
      [True, False, False]
    """
    configs = getattr(method, "model", None), getattr(method, "training", None)
    return learns_from_past(method) and all(map(isinstance, configs, (ModelConfig, MetaTrainConfig)))


_MAX_DIFFERENCES = 8  # maximum number of differences that a message names
_EXTRA = "extra."  # before the names of extra arrays


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMethod:
    """A method that has learned from the past tasks of a search space."""

    name: str
    """The method's, as in `METHODS`."""
    method: Method
    """Its configuration."""
    params: Any = None
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

    The folder is the search space's, and ``metadata.json`` in it is a copy for people; or it is a file, ``NAME.npz``.

    Raises `CheckpointError` for what `check_storable` refuses, or if the folder cannot be written.
    """
    check_storable(fitted_method.name, fitted_method.method, fitted_method.params, fitted_method.n_columns)
    arrays = flatten(jax.device_put({"params": fitted_method.params, "extra": fitted_method.extra_arrays}))
    metadata = {
        "method": fitted_method.name,
        "configuration": config_to_json(fitted_method.method),
        "space": fitted_method.space,
        "columns": fitted_method.n_columns,
        "schema": fitted_method.columns,
        "facts": fitted_method.facts,
        "extra": fitted_method.extra,
    }
    if is_archive(folder):
        write_archive(folder, arrays, metadata)
        return
    steps = _fitted_steps(folder)
    steps.save((steps.latest() or 0) + 1, arrays, metadata, {"metadata.json": metadata})


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

    The folder is the search space's, where `save_fitted` or the trainer of ensembles wrote, or a file, ``NAME.npz``.
    ``ensemble`` reads the training of the method's companion, if there is one (`Entry.companion`), and without
    ``with_params`` only the description is read.

    Raises `CheckpointError` if there is none, if it is damaged or of another version, or if its search space or columns
    are not those that the caller names. Only the numbers of columns are compared if one side has no descriptions.
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
    """Returns the number of the fitted method's step; None if there is none, or the training of an ensemble counts."""
    steps = _fitted_steps(folder)
    step = steps.latest()
    if step is None or not ensemble or not (Path(folder) / STEPS).is_dir():
        return step
    return step if companion_of(str(steps.metadata(step).get("method"))) is None else None


def _read(folder: str | Path, ensemble: bool, with_params: bool) -> FittedMethod:
    """Reads a fitted method, or the training of an ensemble."""
    learned: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    if is_archive(folder):
        metadata, on_host = read_archive(folder)
        arrays = jax.device_put(on_host) if with_params else {}
    elif (step := _fitted_step(folder, ensemble)) is not None:
        metadata = _fitted_steps(folder).metadata(step)
        arrays = _fitted_steps(folder).arrays(step, metadata) if with_params else {}
    else:
        training = TrainingCheckpoint(folder)
        metadata = training.metadata()
        learned = {"params": training.load(metadata).params} if with_params else {}
        losses = {"losses": metadata["history"][-1]} if metadata["history"] else {}
        metadata["facts"] |= {"step": metadata["step"], "best_step": metadata["best_step"], **losses}
    entry = _entry_of(str(metadata["method"]), folder)
    method = entry.restore(metadata["configuration"])
    if arrays:
        extra = {path.removeprefix(_EXTRA): array for path, array in arrays.items() if path.startswith(_EXTRA)}
        like = {"params": abstract_params(method, metadata["columns"]), "extra": extra}
        tree = restore(like, rename(arrays, entry.renamed_arrays))
        learned = {"params": tree["params"], "extra_arrays": tree["extra"]}
    return FittedMethod(
        name=entry.name,
        method=method,
        space=metadata["space"],
        n_columns=metadata["columns"],
        columns=columns_from_json(metadata["schema"]),
        facts=metadata["facts"],
        extra=metadata["extra"],
        **learned,
    )


def _entry_of(name: str, folder: str | Path) -> Entry:
    entry = registered_entry(name)
    if entry is None:  # a name in a file must not import anything but an entry point
        rule = f"the checkpoint in {folder} is of a method that this version does not know, {name!r}"
        remedy = f": pass it as --method, or call register(find({name!r})) of dre_jax.methods first"
        outside = remedy if is_foreign(name) else ""
        raise CheckpointError(f"{rule}{outside}")
    return entry
