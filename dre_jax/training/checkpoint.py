"""Checkpoints of meta-training, one folder a search space: arrays and JSON only. The only file that imports orbax.

``FOLDER/steps/`` is Orbax's; what is complete there is all that counts. ``FOLDER/metadata.json`` and
``FOLDER/losses.csv`` are copies for people, rewritten with every step that is saved.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dre_jax.data.files import read_json, remove_left_over, write_json, write_text
from dre_jax.errors import CheckpointError, ConfigError, DataError
from dre_jax.model import EnsembleParams, ModelConfig
from dre_jax.training.config import LossConfig, MetaTrainConfig
from dre_jax.training.state import TrainState
from dre_jax.training.steps import start

FORMAT = 1
_DIGESTS = "digests.json"


class Saved(NamedTuple):
    """What a checkpoint holds of one step."""

    state: TrainState
    """Parameters, moments, step."""
    best: EnsembleParams | None
    """Parameters of the best validation loss, where the training keeps them."""
    metadata: dict[str, Any]
    """See `describe`."""


def describe(
    *, space: str, n_columns: int, model: ModelConfig, config: MetaTrainConfig, key: Array, fingerprint: str
) -> dict[str, Any]:
    """What tells one training from another.

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
    """What differs between two descriptions, a phrase each: ``name (ours, theirs)``."""
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


_LOOKS = 10  # at a folder that a training may be writing to


class Checkpoint:
    """The folder of one search space's checkpoints.

    Example:
      >>> Checkpoint("nowhere").latest_step() is None
      True
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self._steps = self.folder / "steps"

    def _manager(self, create: bool) -> ocp.CheckpointManager:
        logging.getLogger("absl").setLevel(logging.ERROR)
        if create:
            self._steps.mkdir(parents=True, exist_ok=True)
        # Saving in the foreground: a step that was announced as saved is on the disk.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=2,
            create=False,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=create,
            multiprocessing_options=_this_process(),
        )
        return ocp.CheckpointManager(self._steps, options=options, item_handlers=_handlers())

    def latest_step(self) -> int | None:
        """The last step that is complete, or None.

        Raises:
          CheckpointError: where steps keep vanishing while they are looked at.
        """
        if not self._steps.is_dir():
            return None
        for _ in range(_LOOKS):
            try:
                with self._manager(create=False) as manager:
                    return manager.latest_step()
            except FileNotFoundError:  # a training took an old step away while Orbax read its date
                continue
        raise CheckpointError(f"{self.folder} changes while it is read; try again once its training has ended")

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
        try:
            with self._manager(create=True) as manager:
                step = int(state.step)
                items = ocp.args.Composite(
                    arrays=ocp.args.PyTreeSave(jax.tree.map(_to_save, arrays)), metadata=ocp.args.JsonSave(metadata)
                )
                manager.save(step, args=items, force=True)
                manager.wait_until_finished()
            write_json(self._steps / str(step) / _DIGESTS, _digests(self._steps / str(step)))
        except (OSError, ValueError, DataError) as error:
            raise CheckpointError(f"cannot write a checkpoint to {self.folder}: {_reason(error)}") from error
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
        _check_whole(self._steps / str(step))
        try:
            with self._manager(create=False) as manager:
                found = manager.restore(step, args=ocp.args.Composite(metadata=ocp.args.JsonRestore())).metadata
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"cannot read the checkpoint of step {step} in {self.folder}: {_reason(error)}"
            ) from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
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
        place = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        wanted = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place), wanted)
        try:
            with self._manager(create=False) as manager:
                arguments = ocp.checkpoint_utils.construct_restore_args(wanted)
                items = ocp.args.Composite(arrays=ocp.args.PyTreeRestore(wanted, restore_args=arguments))
                arrays = manager.restore(metadata["step"], args=items).arrays
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"cannot read the checkpoint in {self.folder}: {_reason(error)}") from error
        state = _fill(empty, arrays["state"])
        return Saved(state, None if best is None else _fill(best, arrays["best"]), metadata)


def _this_process() -> ocp.options.MultiprocessingOptions:
    """A search space is one process's: the others are not waited for, they may be at work on another or done."""
    me = jax.process_index()
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    return ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
    )


def _handlers() -> dict[str, Any]:
    """What writes and reads: every process all that it is given, where there are several."""
    mine = _this_process()
    writer = ocp.type_handlers.ArrayHandler(primary_host=mine.primary_host, replica_id=None, use_replica_parallel=False)
    registry = ocp.type_handlers.create_type_handler_registry((jax.Array, writer))
    return {
        "arrays": ocp.PyTreeCheckpointHandler(type_handler_registry=registry, multiprocessing_options=mine),
        "metadata": ocp.JsonCheckpointHandler(multiprocessing_options=mine),
    }


def _to_save(a: Array) -> Array:
    """An array as Orbax takes it.

    Among several processes it refuses arrays of one process alone. So the array is said to lie, in whole, on a device
    of every process, of which this one writes what it has.
    """
    if jax.process_count() == 1:
        return jnp.asarray(a)
    by_process = {device.process_index: device for device in jax.devices()}
    everywhere = NamedSharding(Mesh(np.array(list(by_process.values())), ("processes",)), PartitionSpec())
    mine = jax.device_put(np.asarray(a), by_process[jax.process_index()])
    return jax.make_array_from_single_device_arrays(a.shape, everywhere, [mine])


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a step."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _DIGESTS)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _check_whole(folder: Path) -> None:
    """Refuses a step whose files are not as they were written.

    Before Orbax sees them: it reads many arrays at once, and where one cannot be read the others print tracebacks; and
    it does not notice a number that has changed. A process that was killed may have left a step without digests.
    """
    path = folder / _DIGESTS
    try:
        written, found = (read_json(path) if path.exists() else {}), _digests(folder)
        changed = [name for name in written if found.get(name) != written[name]]
    except (OSError, DataError, TypeError, AttributeError) as error:
        raise CheckpointError(f"cannot read {folder}: {_reason(error)}") from error
    if changed:
        raise CheckpointError(
            f"{folder / changed[0]} is damaged: it is not as it was written; remove {folder} to use the step before"
        )


def _reason(error: Exception) -> str:
    """The first words of an error: those of the file library go on for pages."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:300]}..."


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
    # Through the host: an array that is bound to a device, as Orbax returns it, would have every program that it meets
    # compiled anew.
    return jnp.array(np.asarray(arrays))


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
    metadata = checkpoint.metadata()
    wanted = {"space": space, "columns": n_columns}
    found = differences({k: v for k, v in wanted.items() if v is not None}, metadata)
    if found:
        raise CheckpointError(f"the checkpoint in {checkpoint.folder} does not fit: {'; '.join(found)}")
    saved = checkpoint.load()
    return (saved.state.params if saved.best is None else saved.best), saved.metadata
