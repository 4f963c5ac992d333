"""Convert surrogates of format 1 to format 2: `python scripts/convert_checkpoints.py FILE.npz...`, in place.

Format 1 names the classes of the configuration and of the parameters, and has old names of some fields.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from dre_jax.data.columns import Column
from dre_jax.methods import METHODS
from dre_jax.methods.checkpoints.fitted import FittedMethod, save_fitted
from dre_jax.methods.checkpoints.parameters import abstract_params, restore
from dre_jax.methods.settings import configure

NAMES = {"trust": "transfer_probability", "trust_strength": "transfer_strength"}


def without_classes(content: Any) -> Any:
    if isinstance(content, list):
        return [without_classes(item) for item in content]
    if isinstance(content, dict):
        return {NAMES.get(name, name): without_classes(item) for name, item in content.items() if name != "class"}
    return content


def absent(structure: Any, path: tuple[str, ...] = ()) -> list[str]:
    if structure is None:
        return [".".join(path)]
    parts = structure.get("fields", structure.get("dict", {}))
    return [name for label, part in parts.items() for name in absent(part, (*path, label))]


def convert(path: str) -> None:
    with np.load(path, allow_pickle=False) as content:
        metadata = json.loads(content["metadata"].tobytes())
        arrays = {name.removeprefix(":"): content[name] for name in content.files if name != "metadata"}
    if metadata["format"] != 1 or any(name.startswith("extra arrays:") for name in arrays):
        raise SystemExit(f"{path} must be a surrogate of format 1 without past studies")
    configuration, name = without_classes(metadata["configuration"]), metadata["method"]
    method: Any = configure(METHODS[name].default, configuration, name=name)
    arrays = {"transfer_log_odds" if label == "trust" else label: array for label, array in arrays.items()}
    # A part that the file does not name, as of an older version, is absent too.
    fields = metadata["structure"].get("fields", {})
    arrays |= dict.fromkeys([*absent(metadata["structure"]), *({"common"} - set(fields))])
    save_fitted(
        path,
        FittedMethod(
            name=name,
            method=method,
            params=restore(abstract_params(method, metadata["columns"]), arrays),
            space=metadata["space"],
            n_columns=metadata["columns"],
            columns=tuple(Column(*column) for column in metadata["schema"]),
            facts=metadata["facts"],
            extra=metadata["extra"],
        ),
    )


if __name__ == "__main__":
    for file in sys.argv[1:]:
        convert(file)
