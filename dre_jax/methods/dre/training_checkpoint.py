"""The training of a ranking ensemble, step by step in a folder.

Only complete steps in ``FOLDER/steps/`` count. ``FOLDER/metadata.json`` and ``FOLDER/losses.csv`` are copies for
people, rewritten with every step that is saved.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.columns import Column
from dre_jax.errors import CheckpointError
from dre_jax.methods.dre.backends.provenance import with_backend
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import LossEntry, TrainingRun
from dre_jax.methods.dre.steps import start
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.methods.entries.settings import config_to_json, configure
from dre_jax.methods.storage.provenance import check_same_training, check_version, provenance, warn_of_backends
from dre_jax.methods.storage.steps import Steps
from dre_jax.methods.storage.trees import array_shapes, flatten, restore

STEPS = "steps"
"""The folder of the steps in that of a search space."""


def training_configs(metadata: Mapping[str, Any]) -> tuple[ModelConfig, MetaTrainConfig]:
    """Returns the configurations in metadata; options that came after they were written have their defaults.

    Raises `KeyError` and `ConfigError` for fields or values that this version does not have.
    """
    fields = metadata["configuration"]
    model = configure(ModelConfig(), fields["model"], name="model")
    return model, configure(MetaTrainConfig(), fields["training"], name="training")


def columns_from_json(columns: Any) -> tuple[Column, ...] | None:
    """Returns the columns that JSON holds as lists of their fields; None where they are not known."""
    return None if columns is None else tuple(Column(*column) for column in columns)


class TrainingCheckpoint:
    """The training in the folder of one search space."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self._steps = Steps(self.folder / STEPS, keep=2)

    def latest_step(self) -> int | None:
        """Returns the last complete step, or None."""
        return self._steps.latest()

    def metadata(self) -> dict[str, Any]:
        """Returns the metadata of the last complete step.

        Raises `CheckpointError` without a complete step, or if it is damaged.
        """
        step = self.latest_step()
        if step is None:
            raise CheckpointError(f"{self.folder} must hold a checkpoint, but holds none")
        return {**self._steps.metadata(step), "step": step}

    def load(self, metadata: Mapping[str, Any] | None = None) -> TrainingRun:
        """Returns the run at the last complete step, whose metadata may have been read before.

        Raises `CheckpointError` if there is none, or it cannot be read.
        """
        metadata = self.metadata() if metadata is None else metadata
        with check_version(self.folder):
            model, config = training_configs(metadata)
            state = jax.eval_shape(lambda: start(model, config, metadata["columns"], jax.random.key(0)))
        arrays = self._steps.arrays(metadata["step"], metadata)
        with check_version(self.folder):
            trees = restore({"state": state, "best": state.params}, arrays, exact=True)
        history = [LossEntry(*entry) for entry in metadata["history"]]
        return TrainingRun(**trees, history=history, best_step=metadata["best_step"], resumed_from=metadata["step"])


class ResumableTraining(TrainingCheckpoint):
    """A training that saves its run, and resumes it."""

    def __init__(
        self,
        folder: str | Path,
        space: SearchSpace,
        model: ModelConfig,
        config: MetaTrainConfig,
        key: Array,
        owner: Mapping[str, Any] | None = None,
    ) -> None:
        """Describes the training in the folder of a search space, which the first step creates.

        ``owner`` is the method that the ensemble is trained for, as JSON: "method", "configuration", "extra".
        """
        super().__init__(folder)
        self._config, self._columns = config, space.columns
        owner, facts = owner or {}, provenance(space, key)
        if not owner:  # only a method is complete, with its tasks
            del facts["tasks"]
        sizes = {"model": config_to_json(model), "training": config_to_json(config)}
        self._metadata: dict[str, Any] = {
            "method": owner.get("method", "dre"),
            "configuration": {**owner.get("configuration", {}), **sizes},
            "space": space.name,
            "columns": space.n_columns,
            "schema": space.columns,
            "facts": facts,
            "extra": owner.get("extra", {}),
        }

    def save(self, run: TrainingRun) -> None:
        """Writes a step. Raises `CheckpointError` if the folder cannot be written."""
        step, arrays = int(run.state.step), flatten({"state": run.state, "best": run.best})
        metadata = {**self._metadata, "history": run.history, "best_step": run.best_step}
        metadata["arrays"] = array_shapes(arrays)
        self._steps.save(step, arrays, metadata, _copies({**metadata, "step": step}))

    def resume(self) -> TrainingRun | None:
        """Returns the run as it was last saved; None without a complete step.

        Raises `CheckpointError` if the folder holds another training, or a step that cannot be read.
        """
        if self.latest_step() is None:
            return None
        metadata = self.metadata()
        with check_version(self.folder):
            columns = columns_from_json(metadata["schema"])
            expected, saved = _compared(self._metadata), _compared(metadata)
        if self._config.schedule == "constant" and self._config.steps >= metadata["step"]:
            # At a constant learning rate, the number of steps only says where training ends, and may change.
            expected["training"]["steps"] = saved["training"]["steps"]
        check_same_training(self.folder, expected, saved, self._columns, columns)
        run = self.load(metadata)
        self._steps.complete(_copies(metadata))
        backends = self._metadata["facts"]["backends"] = with_backend(metadata["facts"]["backends"])
        if metadata["step"] < self._config.steps:
            warn_of_backends(backends, self.folder)
        return run


def _compared(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that must be the same before a training is resumed."""
    model, config = training_configs(metadata)
    facts = {name: metadata["facts"][name] for name in ("key", "fingerprint")}
    sizes = {"model": config_to_json(model), "training": config_to_json(config)}
    return {"space": metadata["space"], "columns": metadata["columns"], **sizes, **facts}


def _copies(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content of the files beside the steps."""
    losses = [f"{s},{train:.6f},{'' if val is None else f'{val:.6f}'}" for s, train, val in metadata["history"]]
    return {"metadata.json": metadata, "losses.csv": "\n".join(["step,train_loss,validation_loss", *losses, ""])}
