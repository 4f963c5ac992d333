"""Meta-training of any method into a folder; the same call resumes it after an interruption.

A ranking ensemble is trained by the trainer of ensembles, which resumes. Any other method is fitted and saved as a
fitted method.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.methods.checkpoints import fitted
from dre_jax.methods.checkpoints.parameters import abstract_params, check_configuration
from dre_jax.methods.dre import trainer
from dre_jax.methods.dre.many_spaces import SpaceTraining, meta_train_side_by_side, runs_side_by_side
from dre_jax.methods.dre.model.model_config import preset as model_preset
from dre_jax.methods.dre.trainer import MetaTrainingResult, TrainingProgress
from dre_jax.methods.dre.training_config import META_TRAINING_PRESETS
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.entries.settings import Settings, config_to_json, leaves
from dre_jax.methods.registry import companion_of
from dre_jax.methods.start_configurations import start_rows
from dre_jax.methods.storage.provenance import check_same_training, provenance
from dre_jax.search.method import Method, decisions_of


def configure_training(
    entry: Entry, settings: Settings, *, preset: str | None = None, training: Mapping[str, object] | None = None
) -> Method:
    """Returns a method's configuration for meta-training.

    A preset names sizes and training of the ranking ensemble, and ``training`` has fields of its `MetaTrainConfig`,
    None for the default. If a method has no ensemble but a companion (`Entry.companion`), both apply to the companion.

    Raises `ConfigError` for a method that learns nothing from past tasks, for unknown settings, and for a preset or
    training without an ensemble.
    """
    if not entry.transfer or entry.default is None:
        raise ConfigError(f"meta-training needs a method that learns from past tasks, but {entry.name} learns nothing")
    fields = {name: value for name, value in (training or {}).items() if value is not None}
    if not fitted.has_ensemble(entry.default):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in [*fields, *(["preset"] if preset else [])])
        if names and entry.companion is None:
            raise ConfigError(f"{names} train a ranking ensemble, but {entry.name} has none: --set sets its fields")
        return entry.make(settings)
    if preset is not None:
        sizes = {"model": model_preset(preset), "training": META_TRAINING_PRESETS[preset]}
        default: Any = entry.default
        entry = dataclasses.replace(entry, default=dataclasses.replace(default, **sizes))
    paths = {f"training.{name}": value for name, value in fields.items()}
    repeated_path = next((path for path in paths if path in settings), None)
    if repeated_path is not None:
        values = f"{settings[repeated_path]} and {paths[repeated_path]}"
        raise ConfigError(f"{entry.name}: {repeated_path} must be set once, but got {values}")
    method: Any = entry.make({**settings, **paths})
    evaluate_every = min(method.training.evaluate_every, method.training.steps)
    return dataclasses.replace(method, training=dataclasses.replace(method.training, evaluate_every=evaluate_every))


def meta_train_method(
    name: str,
    method: Method,
    meta: SearchSpace,
    *,
    key: Array,
    folder: Path,
    extra: Mapping[str, Any] | None = None,
    extra_arrays: Callable[[], dict[str, Any]] = dict,
    report: Callable[[TrainingProgress], None] | None = None,
    on_fit: Callable[[], None] = lambda: None,
    stream: bool | None = None,
) -> MetaTrainingResult | None:
    """Meta-trains a method on a search space's training tasks, into the search space's folder.

    Args:
      name: the method's, as in `METHODS`.
      method: its configuration.
      meta: the search space.
      key: PRNG key; the result is that of `method.fit` with this key.
      folder: of the checkpoint.
      extra: JSON that the checkpoint keeps, with "start_rows", configurations to try first.
      extra_arrays: returns arrays that the checkpoint of a method keeps, unless an ensemble is all that it learns.
      report: called after every portion of steps of a ranking ensemble's training.
      on_fit: called before a fit that makes no reports.
      stream: whether a ranking ensemble's tables stay on the host, see `dre_jax.methods.dre.trainer.meta_train`.

    Returns:
      The training of the ranking ensemble; None where there is none, or the folder holds everything already.

    Raises:
      DataError: without training tasks.
      CheckpointError: if the folder holds something else; the message says what differs. Before any learning, for a
        method that a checkpoint cannot hold; see `dre_jax.methods.checkpoints.parameters`.
    """
    facts = provenance(meta, key)
    if _is_done(name, method, meta, facts, folder):
        return None
    extra = {**(extra or {}), "start_rows": _start_rows(meta, facts)}
    if fitted.has_ensemble(method):
        ensemble: Any = method
        return trainer.meta_train(
            meta,
            ensemble.model,
            ensemble.training,
            key=key,
            folder=folder,
            report=report,
            owner=_owner(name, method, extra),
            stream=stream,
        )
    on_fit()
    params = method.fit(meta, key)
    facts["decided"] = decisions_of(method, params)
    fitted_method = fitted.FittedMethod(
        name=name,
        method=method,
        params=params,
        space=meta.name,
        n_columns=meta.n_columns,
        columns=meta.columns,
        facts=facts,
        extra=extra,
        extra_arrays=extra_arrays(),
    )
    fitted.save_fitted(folder, fitted_method)
    return None


def meta_train_ensembles(
    name: str,
    method: Method,
    spaces: Mapping[Path, tuple[SearchSpace, Mapping[str, Any] | None]],
    *,
    key: Array,
    report: Callable[[TrainingProgress], None] | None = None,
) -> dict[Path, MetaTrainingResult]:
    """Meta-trains a ranking ensemble on several search spaces side by side, where a device gains by that.

    Each space comes with its folder and the JSON that its checkpoint keeps; the other arguments and the errors are
    those of `meta_train_method`. Returns the trainings that were not complete, by folder. Returns none where
    `meta_train_method` trains the spaces one after the other.
    """
    ensemble: Any = method
    trainings = {}
    for folder, (meta, extra) in spaces.items():
        facts = provenance(meta, key)
        if not _is_done(name, method, meta, facts, folder):
            extra = {**(extra or {}), "start_rows": _start_rows(meta, facts)}
            trainings[folder] = SpaceTraining(meta, folder, _owner(name, method, extra))
    sizes = ensemble.model, ensemble.training
    if not runs_side_by_side(list(trainings.values()), *sizes):
        return {}
    results = meta_train_side_by_side(list(trainings.values()), *sizes, key=key, report=report)
    return dict(zip(trainings, results, strict=True))


def _is_done(name: str, method: Method, meta: SearchSpace, facts: Mapping[str, Any], folder: Path) -> bool:
    """Returns whether a folder holds all that a method learns. Raises `CheckpointError` as `_is_complete`."""
    meta.require_train_tasks()
    # Until a method is fitted its folder may hold its companion alone.
    exists = fitted.has_checkpoint(folder) if companion_of(name) is None else fitted.has_fitted(folder)
    if exists and _is_complete(name, method, meta, facts, folder):
        return True
    check_configuration(name, method)
    abstract_params(method, meta.n_columns)
    return False


def _start_rows(meta: SearchSpace, facts: Mapping[str, Any]) -> list[list[float]]:
    """Returns the configurations to try first."""
    rows: list[list[float]] = start_rows(meta.require_train_tasks(), None, seed=facts["key"][-1]).tolist()
    return rows


def _owner(name: str, method: Method, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the description of the method that an ensemble is trained for, for the checkpoint of the ensemble."""
    return {"method": name, "configuration": config_to_json(method), "extra": extra}


def _is_complete(name: str, method: Method, meta: SearchSpace, facts: Mapping[str, Any], folder: Path) -> bool:
    """Returns whether a folder holds just this method, with all that it learns.

    Raises:
      CheckpointError: if it holds another method, another space or other data. The trainer compares what it trains.
    """
    ensemble = fitted.has_ensemble(method)
    record = fitted.load_fitted(folder, ensemble=ensemble, with_params=False)
    if "tasks" not in record.facts:  # the training of an ensemble alone
        return False
    expected = {"method": name, "space": meta.name, "columns": meta.n_columns}
    check_same_training(folder, expected, {"method": record.name, "space": record.space, "columns": record.n_columns})
    fields, saved_fields = dict(leaves(method)), dict(leaves(record.method))
    if fitted.has_fitted(folder, ensemble=ensemble):
        fields |= {fact: facts[fact] for fact in ("key", "fingerprint")}
        check_same_training(folder, fields, {**saved_fields, **record.facts}, meta.columns, record.columns)
        return True
    compared_fields = {path: value for path, value in fields.items() if path.split(".")[0] not in ("model", "training")}
    check_same_training(folder, compared_fields, saved_fields)
    return False
