"""Meta-training of any method into a folder; the same call resumes it after an interruption.

The trainer of ensembles trains the ranking ensemble of a method, and resumes. A method that learns nothing else is
complete then; of the others everything else is fitted, and the whole is saved as a fitted method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.errors import ConfigError
from dre_jax.methods.baselines.committee import Committee
from dre_jax.methods.checkpoints.fitted import (
    FittedMethod,
    find_ensemble,
    has_checkpoint,
    has_fitted,
    load_fitted,
    save_fitted,
)
from dre_jax.methods.checkpoints.provenance import check_same_training, provenance
from dre_jax.methods.checkpoints.serialization import check_parameter_classes, config_to_json
from dre_jax.methods.dre import trainer
from dre_jax.methods.dre.model_config import preset as model_preset
from dre_jax.methods.dre.trainer import MetaTrainingResult, TrainingProgress
from dre_jax.methods.dre.training_config import META_TRAINING_PRESETS
from dre_jax.methods.entry import Entry
from dre_jax.methods.registry import METHODS
from dre_jax.methods.settings import Settings, leaves
from dre_jax.methods.start_configurations import start_rows
from dre_jax.search.method import Method, decisions_of


def configure_training(
    entry: Entry, settings: Settings, *, preset: str | None = None, training: Mapping[str, object] | None = None
) -> Method:
    """Returns a method's configuration for meta-training.

    Args:
      entry: the method.
      settings: of its fields.
      preset: sizes and training of its ranking ensemble by name; its own without.
      training: fields of its ensemble's `MetaTrainConfig`; None leaves one as it is. Where the method has none but a
        companion, `Entry.companion`, preset and training are the companion's.

    Raises:
      ConfigError: for a method that learns nothing from past tasks, settings that it does not take, and a preset or
        training where there is no ensemble.

    Example:
      >>> from dre_jax.methods import find
      >>> configure_training(find("committee"), {}, training={"steps": 20}).members[0].training.evaluate_every
      20
    """
    if not entry.transfer or entry.default is None:
        raise ConfigError(f"meta-training needs a method that learns from past tasks, but {entry.name} learns nothing")
    fields = {name: value for name, value in (training or {}).items() if value is not None}
    ensemble = find_ensemble(entry.default)
    if ensemble is None:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in [*fields, *(["preset"] if preset else [])])
        if names and entry.companion is None:
            raise ConfigError(f"{names} train a ranking ensemble, but {entry.name} has none: --set sets its fields")
        return entry.make(settings)
    if preset is not None:
        sizes = {"model": model_preset(preset), "training": META_TRAINING_PRESETS[preset]}
        entry = dataclasses.replace(entry, default=ensemble.replace(entry.default, **sizes))
    paths = {f"{ensemble.prefix}training.{name}": value for name, value in fields.items()}
    repeated = next((path for path in paths if path in settings), None)
    if repeated is not None:
        values = f"{settings[repeated]} and {paths[repeated]}"
        raise ConfigError(f"{entry.name}: {repeated} must be set once, but got {values}")
    method = entry.make({**settings, **paths})
    config = (find_ensemble(method) or ensemble).training
    config = dataclasses.replace(config, evaluate_every=min(config.evaluate_every, config.steps))
    return ensemble.replace(method, training=config)


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
      key: PRNG key: what is learned is what `method.fit` learns with it.
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
      CheckpointError: if the folder holds something else, where the message says what differs; or before anything is
        learned, for a method whose parameters cannot be saved as `check_parameter_classes` says.
    """
    tasks = meta.require_train_tasks()
    check_parameter_classes(method)
    facts, ensemble = provenance(meta, key), find_ensemble(method)
    # Until a method is fitted its folder may hold its companion alone.
    exists = has_checkpoint(folder) if METHODS[name].companion is None else has_fitted(folder)
    if exists and _is_complete(name, method, meta, facts, folder):
        return None
    start = start_rows(tasks, None, seed=facts["key"][-1])
    extra = {**(extra or {}), "start_rows": start.tolist()}
    owner = {"name": name, "configuration": config_to_json(method), "tasks": list(tasks), "extra": extra}
    owner["member"] = None if ensemble is None else ensemble.member
    trained: MetaTrainingResult | None = None

    def fit_part(part: Any, meta: SearchSpace, key: Array) -> Any:
        nonlocal trained
        if ensemble is None or trained is not None or getattr(part, "model", None) != ensemble.model:
            on_fit()
            return part.fit(meta, key)
        trained = trainer.meta_train(
            meta,
            part.model,
            part.training,
            key=key,
            folder=folder,
            report=report,
            facts={"method": owner},
            stream=stream,
        )
        return trained.params

    if isinstance(method, Committee):
        params = method.fit(meta, key, fit_member=fit_part)
    else:
        params = fit_part(method, meta, key)
    if trained is not None:
        if owner["member"] is None:
            return trained  # its checkpoint is the trainer's
        facts |= {"step": trained.step, "losses": list(trained.history[-1])}
    facts["decided"] = decisions_of(method, params)
    fitted = FittedMethod(
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
    save_fitted(folder, fitted)
    return trained


def _is_complete(name: str, method: Method, meta: SearchSpace, facts: Mapping[str, Any], folder: Path) -> bool:
    """Returns whether a folder holds just this method, with all that it learns.

    Raises:
      CheckpointError: if it holds another method, another space or other data. The trainer compares what it trains.
    """
    ensemble = find_ensemble(method)
    saved = load_fitted(folder, ensemble=ensemble is not None, with_params=False)
    if "tasks" not in saved.facts:  # the training of an ensemble alone
        return False
    ours = {"method": name, "space": meta.name, "columns": meta.n_columns}
    owner = saved.facts.get("part_of", saved.name)
    check_same_training(folder, ours, {"method": owner, "space": saved.space, "columns": saved.n_columns})
    fields, saved_fields = dict(leaves(method)), dict(leaves(saved.method))
    if has_fitted(folder, ensemble=ensemble is not None):
        is_complete = fields == saved_fields
        if ensemble is not None:  # the number of steps may change, see the trainer
            del fields[f"{ensemble.prefix}training.steps"]
        fields |= {fact: facts[fact] for fact in ("key", "fingerprint")}
        check_same_training(folder, fields, {**saved_fields, **saved.facts}, meta.columns, saved.columns)
        return is_complete
    if "part_of" not in saved.facts:
        others = {path: value for path, value in fields.items() if path.split(".")[0] not in ("model", "training")}
        check_same_training(folder, others, saved_fields)
    return False
