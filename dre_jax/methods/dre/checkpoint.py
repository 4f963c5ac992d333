"""Checkpoints of meta-training, one folder a search space: arrays and JSON only.

What is complete in ``FOLDER/steps/`` is all that counts. ``FOLDER/metadata.json`` and ``FOLDER/losses.csv`` are copies
for people, rewritten with every step that is saved.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax import Array

from dre_jax.data.files import remove_left_over, write_json, write_text
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods.checkpoints.storage import Steps
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.state import TrainState
from dre_jax.methods.dre.steps import start
from dre_jax.methods.dre.training_config import LossConfig, MetaTrainConfig

FORMAT = 1


class Saved(NamedTuple):
    """One step of a checkpoint."""

    state: TrainState
    """Parameters, moments, step."""
    best: EnsembleParams | None
    """Parameters of the best validation loss, where the training keeps them."""
    metadata: dict[str, Any]
    """See `describe`."""


def describe(
    *, space: str, n_columns: int, model: ModelConfig, config: MetaTrainConfig, key: Array, fingerprint: str
) -> dict[str, Any]:
    """The description of a training: all that must agree before it is resumed.

    Args:
      space: the search space's name.
      n_columns: D.
      model: sizes.
      config: what training does.
      key: the training's PRNG key.
      fingerprint: digest of the training data.
    """
    return {
        "format": FORMAT,
        "space": space,
        "columns": n_columns,
        "model": dataclasses.asdict(model),
        "training": dataclasses.asdict(config),
        "key": [int(word) for word in jax.random.key_data(key).ravel()],
        "fingerprint": fingerprint,
    }


def model_config(metadata: dict[str, Any]) -> ModelConfig:
    """The model configuration that a checkpoint was written with."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in metadata["model"].items()}
    return ModelConfig(**fields)


def training_config(metadata: dict[str, Any]) -> MetaTrainConfig:
    """The training configuration that a checkpoint was written with."""
    fields = dict(metadata["training"])
    return MetaTrainConfig(**{**fields, "loss": LossConfig(**fields["loss"])})


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """Differences between two descriptions, a phrase each: ``name (ours, theirs)``."""
    found = []
    for name in ours:
        mine, other = _plain(ours[name]), _plain(theirs.get(name))
        if isinstance(mine, dict) and isinstance(other, dict):
            found += differences(mine, other, f"{prefix}{name}.")
        elif mine != other:
            found.append(f"{prefix}{name} ({_short(mine)} here, {_short(other)} in the checkpoint)")
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}..."


class Checkpoint:
    """The folder of one search space's checkpoints.

    Example:
      >>> Checkpoint("nowhere").latest_step() is None
      True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self._steps = Steps(self.folder / "steps", keep=2)

    def latest_step(self) -> int | None:
        """The last step that is complete, or None.

        Raises:
          CheckpointError: where steps keep vanishing while they are looked at.
        """
        return self._steps.latest()

    def save(self, state: TrainState, best: EnsembleParams | None, metadata: dict[str, Any]) -> None:
        """Writes a step.

        Args:
          state: where training stands.
          best: parameters of the best validation loss, if they are kept.
          metadata: see `describe`; may carry more, a "history" of (step, training loss, validation loss) among it.

        Raises:
          CheckpointError: where the folder cannot be written.
        """
        arrays = _drop_none({"state": _as_dict(state), "best": _as_dict(best)})
        metadata = {**metadata, "arrays": _shapes(arrays)}
        self._steps.save(int(state.step), arrays, metadata)
        for name in ("metadata.json", "losses.csv"):
            remove_left_over(self.folder / name)
        write_json(self.folder / "metadata.json", {**metadata, "step": int(state.step)}, indent=1)
        rows = "".join(
            f"{s},{train:.6f},{'' if val is None else f'{val:.6f}'}\n" for s, train, val in metadata["history"]
        )
        write_text(self.folder / "losses.csv", "step,train_loss,validation_loss\n" + rows)

    def metadata(self) -> dict[str, Any]:
        """The description that the last complete step was saved with.

        Raises:
          CheckpointError: without a complete step.
        """
        step = self.latest_step()
        if step is None:
            raise CheckpointError(f"{self.folder} must hold a checkpoint, but holds none")
        found = self._steps.metadata(step)
        if found.get("format") != FORMAT:
            raise CheckpointError(f"{self.folder} must hold a dre_jax checkpoint of format {FORMAT}, but does not")
        return {**found, "step": step}

    def load(self) -> Saved:
        """The last complete step.

        Raises:
          CheckpointError: where none is there or it cannot be read.
        """
        metadata = self.metadata()
        try:
            model, config = model_config(metadata), training_config(metadata)
        except (TypeError, KeyError, ConfigError) as error:
            raise CheckpointError(f"the configuration in {self.folder} is not this version's: {error}") from error
        empty = jax.eval_shape(lambda: start(model, config, metadata["columns"], jax.random.key(0)))
        best = empty.params if metadata.get("best_step") is not None else None
        wanted = _drop_none({"state": _as_dict(empty), "best": _as_dict(best)})
        found = differences(_shapes(wanted), metadata.get("arrays", {}))
        if found:
            raise CheckpointError(f"the arrays in {self.folder} are not this version's: {'; '.join(found)}")
        arrays = self._steps.arrays(metadata["step"], wanted)
        state = _fill(empty, arrays["state"])
        return Saved(state, None if best is None else _fill(best, arrays["best"]), metadata)


def _as_dict(value: Any) -> Any:
    """Named tuples as dictionaries, so that the files say what each array is."""
    if hasattr(value, "_asdict"):
        return {name: _as_dict(part) for name, part in value._asdict().items()}
    return {name: _as_dict(part) for name, part in value.items()} if isinstance(value, dict) else value


def _drop_none(tree: Any) -> Any:
    return {k: _drop_none(v) for k, v in tree.items() if v is not None} if isinstance(tree, dict) else tree


def _shapes(arrays: Any) -> dict[str, list[int]]:
    """The shape of every array, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(arrays)
    return {jax.tree_util.keystr(path, simple=True, separator="."): list(leaf.shape) for path, leaf in leaves}


def _fill(like: Any, arrays: Any) -> Any:
    """The arrays in the structure of ``like``, which may hold None where no array was written."""
    if like is None:
        return None
    if hasattr(like, "_fields"):
        return type(like)(*(_fill(getattr(like, name), (arrays or {}).get(name)) for name in like._fields))
    if isinstance(like, dict):
        return {name: _fill(like[name], arrays[name]) for name in like}
    return arrays


def load_params(
    folder: str | Path, *, space: str | None = None, n_columns: int | None = None
) -> tuple[EnsembleParams, dict[str, Any]]:
    """Meta-trained parameters and their description: the best by validation loss where kept, else the last.

    Args:
      folder: a search space's checkpoint folder.
      space: refuse another search space's.
      n_columns: refuse another column count.

    Raises:
      CheckpointError: where there is none, or it does not fit; the message says what differs.
    """
    checkpoint = Checkpoint(folder)
    saved = checkpoint.load()
    wanted = {"space": space, "columns": n_columns}
    found = differences({k: v for k, v in wanted.items() if v is not None}, saved.metadata)
    if found:
        raise CheckpointError(f"the checkpoint in {checkpoint.folder} does not fit: {'; '.join(found)}")
    return (saved.state.params if saved.best is None else saved.best), saved.metadata
