"""Numbered steps of arrays and JSON in a folder: never a pickle. The only file that imports orbax.

A step is there in whole or not at all: Orbax writes beside it and renames. Steps before it are removed afterwards.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dre_jax.data.files import read_json, write_json
from dre_jax.errors import CheckpointError, DataError

_DIGESTS = "digests.json"
_LOOKS = 10  # at a folder that a training may be writing to


class Steps:
    """The steps in a folder.

    Example:
      >>> Steps("nowhere", keep=2).latest() is None
      True
    """

    def __init__(self, folder: str | Path, keep: int) -> None:
        """Steps that are there, or will be.

        Args:
          folder: made by the first step that is saved.
          keep: how many steps are kept, the latest.
        """
        self.folder = Path(folder).absolute()
        self._keep = keep

    def latest(self) -> int | None:
        """The last step that is complete, or None.

        Raises:
          CheckpointError: where steps keep vanishing while they are looked at.
        """
        if not self.folder.is_dir():
            return None
        for _ in range(_LOOKS):
            try:
                with self._manager(create=False) as manager:
                    return manager.latest_step()
            except FileNotFoundError:  # another process took an old step away while Orbax read its date
                continue
        raise CheckpointError(f"{self.folder.parent} changes while it is read; try again once its training has ended")

    def save(self, step: int, arrays: dict[str, Any], metadata: dict[str, Any]) -> None:
        """Writes a step.

        Args:
          step: its number, higher than those that are there.
          arrays: at least one, in dictionaries of any depth.
          metadata: JSON.

        Raises:
          CheckpointError: where the folder cannot be written.
        """
        items = ocp.args.Composite(
            arrays=ocp.args.PyTreeSave(jax.tree.map(_to_save, arrays)), metadata=ocp.args.JsonSave(metadata)
        )
        try:
            with self._manager(create=True) as manager:
                manager.save(step, args=items, force=True)
                manager.wait_until_finished()
            write_json(self._of(step) / _DIGESTS, _digests(self._of(step)))
        except (OSError, ValueError, TypeError, DataError) as error:
            raise CheckpointError(f"cannot write a checkpoint to {self.folder.parent}: {_reason(error)}") from error

    def metadata(self, step: int) -> dict[str, Any]:
        """A step's metadata.

        Raises:
          CheckpointError: for a step that is damaged or cannot be read.
        """
        _check_whole(self._of(step))
        found = self._restore(step, metadata=ocp.args.JsonRestore()).metadata
        if not isinstance(found, dict):
            raise CheckpointError(f"{self.folder.parent} must hold a dre_jax checkpoint, but does not")
        return found

    def arrays(self, step: int, like: dict[str, Any]) -> Any:
        """A step's arrays, on this process's first device.

        Args:
          step: its number.
          like: shapes and dtypes, in the dictionaries that were saved.

        Raises:
          CheckpointError: where they cannot be read.
        """
        place = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        wanted = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place), like)
        arguments = ocp.checkpoint_utils.construct_restore_args(wanted)
        found = self._restore(step, arrays=ocp.args.PyTreeRestore(wanted, restore_args=arguments)).arrays
        # Through the host: an array that is bound to a device, as Orbax returns it, would have every program that it
        # meets compiled anew.
        return jax.device_put(jax.tree.map(np.array, found))

    def _of(self, step: int) -> Path:
        return self.folder / str(step)

    def _restore(self, step: int, **items: Any) -> Any:
        try:
            with self._manager(create=False) as manager:
                return manager.restore(step, args=ocp.args.Composite(**items))
        except (OSError, ValueError, KeyError) as error:
            message = f"cannot read the checkpoint of step {step} in {self.folder.parent}: {_reason(error)}"
            raise CheckpointError(message) from error

    def _manager(self, create: bool) -> ocp.CheckpointManager:
        logging.getLogger("absl").setLevel(logging.ERROR)
        if create:
            self.folder.mkdir(parents=True, exist_ok=True)
        # Saving in the foreground: a step that was announced as saved is on the disk.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=self._keep,
            create=False,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=create,
            multiprocessing_options=_this_process(),
        )
        return ocp.CheckpointManager(self.folder, options=options, item_handlers=_handlers())


def _this_process() -> ocp.options.MultiprocessingOptions:
    """A search space is one process's: the others are not waited for, they may be at work on another or done."""
    me = jax.process_index()
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    return ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
    )


def _handlers() -> dict[str, Any]:
    """Handlers for arrays and metadata; of several processes each reads and writes all that it is given."""
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
        return jax.device_put(a)
    by_process = {device.process_index: device for device in jax.devices()}
    all_processes = NamedSharding(Mesh(np.array(list(by_process.values())), ("processes",)), PartitionSpec())
    mine = jax.device_put(np.asarray(a), by_process[jax.process_index()])
    return jax.make_array_from_single_device_arrays(a.shape, all_processes, [mine])


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
        others = [path for path in folder.parent.iterdir() if path.name.isdigit() and path != folder]
        remedy = f"; remove {folder} to use the step before" if others else ""
        raise CheckpointError(f"{folder / changed[0]} is damaged: it is not as it was written{remedy}")


def _reason(error: Exception) -> str:
    """The first words of an error: those of the file library go on for pages."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:300]}..."
