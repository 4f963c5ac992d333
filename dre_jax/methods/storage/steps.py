"""Numbered steps of arrays and JSON in a folder: never a pickle. The only file that imports orbax.

A step exists completely or not at all: Orbax writes a temporary folder and renames it. Older steps are removed
afterwards. Digests of all files of a step reveal damage.
"""

import hashlib
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dre_jax.data.files import read_json, remove_left_over, write_json, write_text
from dre_jax.errors import CheckpointError, DataError
from dre_jax.methods.storage.trees import array_shapes

FORMAT = 2
_DIGESTS = "digests.json"


class Steps:
    """The steps in a folder."""

    def __init__(self, folder: str | Path, keep: int) -> None:
        """Describes the steps in a folder, which the first step creates. The latest ``keep`` steps stay."""
        self.folder = Path(folder).absolute()
        self._keep = keep

    def latest(self) -> int | None:
        """Returns the number of the last complete step, or None."""
        # Orbax gives a step its number when the step is complete.
        steps = self.folder.iterdir() if self.folder.is_dir() else ()
        return max((int(path.name) for path in steps if path.name.isdecimal()), default=None)

    def save(
        self, step: int, arrays: Mapping[str, Any], metadata: Mapping[str, Any], copies: Mapping[str, Any] | None = None
    ) -> None:
        """Writes a step of a higher number than those that exist: arrays by path, None for what is absent, and JSON.

        ``copies`` are texts, or objects of JSON, for people, by the name of their file in the folder above.

        Raises `CheckpointError` if the folder cannot be written, or has too little room.
        """
        ocp = _orbax()
        prepared_arrays = {path: _prepare_array(array) for path, array in arrays.items() if array is not None}
        items = ocp.args.Composite(
            arrays=ocp.args.PyTreeSave(prepared_arrays),
            metadata=ocp.args.JsonSave({"format": FORMAT, **metadata, "arrays": array_shapes(arrays)}),
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_room(sum(leaf.nbytes for leaf in jax.tree.leaves(prepared_arrays)))
            with self._manager(remove_unfinished=True) as manager:
                manager.save(step, args=items, force=True)
                manager.wait_until_finished()
            write_json(self._path(step) / _DIGESTS, _digests(self._path(step)))
            self._write_copies(copies or {})
        except (OSError, ValueError, TypeError, DataError) as error:
            raise CheckpointError(f"cannot write a checkpoint to {self.folder.parent}: {str(error)[:300]}") from error

    def _check_room(self, n_bytes: int) -> None:
        """Checks that the disk has room for the arrays: otherwise, Orbax prints the traceback of every array."""
        free = shutil.disk_usage(self.folder).free
        if free < n_bytes:
            raise OSError(f"{n_bytes / 1e6:.1f} MB are needed, but {free / 1e6:.1f} MB are free")

    def complete(self, copies: Mapping[str, Any]) -> None:
        """Completes the work of a process that was killed after its last step: writes copies, and removes old steps.

        Raises `CheckpointError` if the folder cannot be written.
        """
        steps = sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdecimal())
        try:
            self._write_copies(copies)
            for step in steps[: -self._keep]:
                shutil.rmtree(self._path(step))
        except (OSError, DataError) as error:
            raise CheckpointError(f"cannot write a checkpoint to {self.folder.parent}: {str(error)[:300]}") from error

    def _write_copies(self, copies: Mapping[str, Any]) -> None:
        for name, content in copies.items():
            path = self.folder.parent / name
            remove_left_over(path)
            if isinstance(content, str):
                write_text(path, content)
            else:
                write_json(path, {"format": FORMAT, **content}, indent=1)

    def metadata(self, step: int) -> dict[str, Any]:
        """Returns the metadata of a step.

        Raises `CheckpointError` if the step is damaged, of another format, or cannot be read.
        """
        _check_digests(self._path(step))
        try:
            metadata = read_json(self._path(step) / "metadata" / "metadata")
        except DataError as error:
            raise self._unreadable(step, error) from error
        if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
            content = repr(metadata.get("format")) if isinstance(metadata, dict) else "none"
            raise CheckpointError(
                f"{self.folder.parent} must hold a checkpoint of format {FORMAT}, but holds {content}"
            )
        return metadata

    def arrays(self, step: int, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arrays of a step by path, on this process's first device, and None for what is absent.

        Raises `CheckpointError` if they cannot be read.
        """
        ocp = _orbax()
        device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        shapes = [(path, *array) for path, array in metadata["arrays"].items() if array is not None]
        target = {path: jax.ShapeDtypeStruct(tuple(a), np.dtype(kind), sharding=device) for path, a, kind in shapes}
        arguments = ocp.checkpoint_utils.construct_restore_args(target)
        restore = ocp.args.Composite(arrays=ocp.args.PyTreeRestore(target, arguments, partial_restore=True))
        try:
            with self._manager(remove_unfinished=False) as manager:
                arrays = manager.restore(step, args=restore).arrays
        except (OSError, ValueError, KeyError) as error:
            raise self._unreadable(step, error) from error
        # Through the host: an array that is bound to a device, as Orbax returns it, would have every program that it
        # meets compiled anew.
        return {**dict.fromkeys(metadata["arrays"]), **jax.device_put(jax.tree.map(np.array, arrays))}

    def _path(self, step: int) -> Path:
        return self.folder / str(step)

    def _unreadable(self, step: int, error: Exception) -> CheckpointError:
        text = str(error)[:300]
        return CheckpointError(f"cannot read the checkpoint of step {step} in {self.folder.parent}: {text}")

    def _manager(self, remove_unfinished: bool) -> Any:
        ocp = _orbax()
        # Saving in the foreground: a step that was announced as saved is on the disk.
        process = _this_process()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=self._keep,
            create=False,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=remove_unfinished,
            multiprocessing_options=process,
        )
        # Of several processes each reads and writes all of its own arrays.
        writer = ocp.type_handlers.ArrayHandler(
            primary_host=process.primary_host, replica_id=None, use_replica_parallel=False
        )
        registry = ocp.type_handlers.create_type_handler_registry((jax.Array, writer))
        handlers = {
            "arrays": ocp.PyTreeCheckpointHandler(type_handler_registry=registry, multiprocessing_options=process),
            "metadata": ocp.JsonCheckpointHandler(multiprocessing_options=process),
        }
        return ocp.CheckpointManager(self.folder, options=options, item_handlers=handlers)


def _orbax() -> Any:
    """Returns Orbax's module; its import takes a second, so it is imported only to save or load."""
    import orbax.checkpoint as ocp

    logging.getLogger("absl").setLevel(logging.ERROR)
    return ocp


def _this_process() -> Any:
    """Returns options by which a process waits for no other: each has search spaces of its own."""
    options = _orbax().options.MultiprocessingOptions
    if jax.process_count() == 1:
        return options()
    index = jax.process_index()
    return options(primary_host=index, active_processes={index}, barrier_sync_key_prefix=f"process{index}")


def _prepare_array(a: Array) -> Array:
    """Returns an array as Orbax takes it.

    Among several processes Orbax refuses arrays of one process alone. The array is therefore declared to lie, in whole,
    on a device of every process, and this process writes its copy.
    """
    if jax.process_count() == 1:
        return jax.device_put(a)
    by_process = {device.process_index: device for device in jax.devices()}
    all_processes = NamedSharding(Mesh(np.array(list(by_process.values())), ("processes",)), PartitionSpec())
    local = jax.device_put(np.asarray(a), by_process[jax.process_index()])
    return jax.make_array_from_single_device_arrays(a.shape, all_processes, [local])


def _digests(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of a step."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _DIGESTS)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _check_digests(folder: Path) -> None:
    """Raises `CheckpointError` if the files of a step are not as they were written.

    The check comes before Orbax reads the files. Orbax reads many arrays at once: if one cannot be read, the others
    print tracebacks. It also does not notice a number that has changed. A process that was killed may have left a step
    without digests.
    """
    path = folder / _DIGESTS
    try:
        expected_digests, actual_digests = (read_json(path) if path.exists() else {}), _digests(folder)
        changed_files = [name for name in expected_digests if actual_digests.get(name) != expected_digests[name]]
    except (OSError, DataError, TypeError, AttributeError) as error:
        raise CheckpointError(f"cannot read {folder}: {str(error)[:300]}") from error
    if changed_files:
        other_steps = [path for path in folder.parent.iterdir() if path.name.isdigit() and path != folder]
        remedy = f"; remove {folder} to use the step before" if other_steps else ""
        raise CheckpointError(f"{folder / changed_files[0]} is damaged: it is not as it was written{remedy}")
