"""Arrays and JSON in one compressed file, for small checkpoints: NumPy's ``.npz``, never a pickle."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data.files import atomic_writer, parse_json
from dre_jax.errors import CheckpointError, DataError
from dre_jax.methods.storage.steps import FORMAT
from dre_jax.methods.storage.trees import array_shapes

SUFFIX = ".npz"
_METADATA = "metadata"
_SEPARATOR = ":"


def is_archive(path: str | Path) -> bool:
    """Returns whether a path is that of an archive, by its ending.

    Example:
      >>> is_archive("surrogate.npz"), is_archive("surrogate")
      (True, False)
    """
    return Path(path).suffix == SUFFIX


def write_archive(path: str | Path, arrays: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Writes an archive at once or not at all. Raises `CheckpointError` if it cannot be written.

    ``arrays`` are by path, None for absent ones.
    """
    try:
        described = {"format": FORMAT, **metadata, "arrays": array_shapes(arrays)}
        text = json.dumps(described, allow_nan=False).encode()
        content = {f"{_SEPARATOR}{path}": np.asarray(array) for path, array in arrays.items() if array is not None}
        with atomic_writer(path) as stream:
            np.savez_compressed(stream, **{_METADATA: np.frombuffer(text, np.uint8)}, **content)  # type: ignore[arg-type]
    except (DataError, TypeError, ValueError) as error:
        raise CheckpointError(f"cannot write a checkpoint to {path}: {str(error)[:300]}") from error


def read_archive(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the metadata and the arrays of an archive by path, None for absent ones.

    Raises `CheckpointError` if there is none, or it is damaged or of another format.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            metadata = parse_json(content[_METADATA].tobytes(), str(path))
            if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
                raise CheckpointError(f"{path} must hold a checkpoint of format {FORMAT}")
            shapes = metadata["arrays"]
            arrays = {name: None if shapes[name] is None else content[f"{_SEPARATOR}{name}"] for name in shapes}
    except (OSError, KeyError, ValueError, EOFError, DataError, zipfile.BadZipFile, zlib.error) as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {str(error)[:300]}") from error
    return metadata, arrays
