"""Meta-training of any method into a folder, where the same call after an interruption goes on.

The ranking ensemble of a method is trained by the trainer of ensembles, which resumes. A method that learns nothing
else is complete then; of the others the rest is fitted, and the whole saved as `checkpoints.fitted` has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.columns import differing_columns
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods.baselines.committee import Committee
from dre_jax.methods.checkpoints.fitted import (
    Ensemble,
    Fitted,
    describe,
    facts_of,
    find_ensemble,
    is_fitted,
    is_there,
    save_fitted,
)
from dre_jax.methods.checkpoints.serialization import config_to_json
from dre_jax.methods.dre import trainer
from dre_jax.methods.dre.model_config import preset as model_preset
from dre_jax.methods.dre.trainer import MetaTrainingResult, TrainingProgress
from dre_jax.methods.dre.training_config import META_TRAINING_PRESETS
from dre_jax.methods.entry import Entry
from dre_jax.methods.registry import METHODS
from dre_jax.methods.settings import Settings, leaves
from dre_jax.methods.start_configurations import N_START, start_rows
from dre_jax.search.method import Method, decisions_of


def method_to_learn(
    entry: Entry, settings: Settings, *, preset: str | None = None, training: Mapping[str, object] | None = None
) -> Method:
    """A method's configuration for meta-training.

    Args:
      entry: the method.
      settings: of its fields.
      preset: sizes and training of its ranking ensemble by name; its own without.
      training: fields of its ensemble's `MetaTrainConfig`; None leaves one as it is. Where there is another method
        beside it, `Entry.beside`, that one takes preset and training.

    Raises:
      ConfigError: for a method that learns nothing from past tasks, settings that it does not take, and a preset or
        training where there is no ensemble.

    Example:
      >>> from dre_jax.methods import find
      >>> method_to_learn(find("committee"), {}, training={"steps": 20}).members[0].training.evaluate_every
      20
    """
    if not entry.transfer or entry.default is None:
        raise ConfigError(f"meta-training needs a method that learns from past tasks, but {entry.name} learns nothing")
    given = {name: value for name, value in (training or {}).items() if value is not None}
    given |= {} if preset is None else {"preset": preset}
    ensemble = find_ensemble(entry.default)
    if ensemble is None:
        if given and entry.beside is None:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ConfigError(f"{names} train a ranking ensemble, but {entry.name} has none: --set sets its fields")
        return entry.make(settings)
    if preset is not None:
        sizes = {"model": model_preset(preset), "training": META_TRAINING_PRESETS[preset]}
        entry = dataclasses.replace(entry, default=_with(entry.default, ensemble, **sizes))
    fields = {f"{_prefix(ensemble)}training.{name}": value for name, value in given.items() if name != "preset"}
    twice = [path for path in fields if path in settings]
    if twice:
        both = f"{settings[twice[0]]} and {fields[twice[0]]}"
        raise ConfigError(f"{entry.name}: {twice[0]} must be set once, but got {both}")
    made = entry.make({**settings, **fields})
    config = (find_ensemble(made) or ensemble).training
    often = dataclasses.replace(config, evaluate_every=min(config.evaluate_every, config.steps))
    return _with(made, ensemble, training=often)


def learn(
    name: str,
    method: Method,
    meta: SearchSpace,
    *,
    key: Array,
    folder: Path,
    extra: Mapping[str, Any] | None = None,
    report: Callable[[TrainingProgress], None] | None = None,
    tell: Callable[[], None] = lambda: None,
    stream: bool | None = None,
) -> MetaTrainingResult | None:
    """Meta-trains a method on a search space's training tasks, into the search space's folder.

    Args:
      name: the method's, as in `METHODS`.
      method: its configuration.
      meta: the search space.
      key: PRNG key: what is learned is what `method.fit` learns with it.
      folder: of the checkpoint.
      extra: JSON that the checkpoint keeps beside configurations to try first, "start_rows".
      report: called after every portion of steps of a ranking ensemble's training.
      tell: called before what takes its time without reports.
      stream: whether a ranking ensemble's tables stay on the host, see `dre_jax.methods.dre.trainer.meta_train`.

    Returns:
      The training of the ranking ensemble; None where there is none, or all was there already.

    Raises:
      DataError: without training tasks.
      CheckpointError: where the folder holds something else; the message says what differs.
    """
    tasks = meta.require_train_tasks()
    facts, ensemble = facts_of(meta, key), find_ensemble(method)
    # Until a method is fitted its folder may hold the one that it has beside it.
    counts = is_there(folder) if METHODS[name].beside is None else is_fitted(folder)
    if counts and _is_done(name, method, meta, facts, folder):
        return None
    kept = {**(extra or {}), "start_rows": start_rows(tasks, N_START, seed=facts["key"][-1]).tolist()}
    said = {"name": name, "configuration": config_to_json(method), "tasks": list(tasks), "extra": kept}
    said["member"] = None if ensemble is None else ensemble.member
    trained: list[MetaTrainingResult] = []

    def train(one: Any, meta: SearchSpace, key: Array) -> Any:
        is_ensemble = ensemble is not None and not trained and getattr(one, "model", None) == ensemble.model
        if not is_ensemble:
            tell()
            return one.fit(meta, key)
        made: dict[str, Any] = {"key": key, "folder": folder, "report": report, "facts": {"method": said}}
        made["stream"] = stream
        trained.append(trainer.meta_train(meta, one.model, one.training, **made))
        return trained[0].params

    if isinstance(method, Committee):
        params = method.fit(meta, key, fit_member=train)
    else:
        params = train(method, meta, key)
    made = trained[0] if trained else None
    if made is not None and said["member"] is None:
        return made  # its checkpoint is the trainer's
    if made is not None:
        facts |= {"step": made.step, "losses": list(made.history[-1])}
    facts["decided"] = decisions_of(method, params)
    fitted = Fitted(
        name=name,
        method=method,
        params=params,
        space=meta.name,
        n_columns=meta.n_columns,
        columns=meta.columns,
        facts=facts,
        extra=kept,
    )
    save_fitted(folder, fitted)
    return made


def _is_done(name: str, method: Method, meta: SearchSpace, facts: Mapping[str, Any], folder: Path) -> bool:
    """Returns whether a folder holds just this method, with all that it learns; raises where it holds another."""
    from dre_jax.methods.dre.checkpoint import differences

    ensemble = find_ensemble(method)
    there = describe(folder, ensemble=ensemble is not None)
    if "tasks" not in there.facts:  # the training of an ensemble that says no more: the trainer compares it
        return False
    whole = is_fitted(folder, ensemble=ensemble is not None)
    mine = {"method": name, "space": meta.name, "columns": meta.n_columns}
    said = {"method": there.facts.get("part_of", there.name), "space": there.space, "columns": there.n_columns}
    found = differences(mine, said)
    ours, theirs = dict(leaves(method)), dict(leaves(there.method))
    done = whole and ours == theirs
    if whole and not found:
        if ensemble is not None:  # how far it is trained may be changed, see the trainer
            del ours[f"{_prefix(ensemble)}training.steps"]
        found = differences(
            {**ours, **{fact: facts[fact] for fact in ("key", "fingerprint")}}, {**theirs, **there.facts}
        )
        if meta.columns and there.columns:
            found += differing_columns(meta.columns, there.columns)
    elif not found and "part_of" not in there.facts:  # model and training the trainer compares
        others = {path: value for path, value in ours.items() if path.partition(".")[0] not in ("model", "training")}
        found = differences(others, theirs)
    if found:
        rule = f"{folder} holds another training: {'; '.join(found)}"
        raise CheckpointError(f"{rule}; give another folder or remove it")
    return done


def _prefix(ensemble: Ensemble) -> str:
    """Path of the fields of what has the ensemble."""
    return "" if ensemble.member is None else f"members.{ensemble.member}."


def _with(method: Any, ensemble: Ensemble, **changes: Any) -> Any:
    """The method with other fields in what has the ensemble."""
    if ensemble.member is None:
        return dataclasses.replace(method, **changes)
    members = list(method.members)
    members[ensemble.member] = dataclasses.replace(members[ensemble.member], **changes)
    return dataclasses.replace(method, members=tuple(members))
