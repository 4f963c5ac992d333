"""Results that pictures are drawn from, kept as small JSON files beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data import read_results
from dre_jax.data.files import write_text
from dre_jax.errors import DataError
from dre_jax.report import compare

METHODS = ("hedged-prior", "dre", "gp", "tpe", "random")
COMMAND = (
    "scripts/compare_methods.py --methods hedged-prior dre tpe gp random --data bundled --designs test0,test1,test2 "
    "--trials 50 --out DIR"
)


def regret_of(folder: Path) -> dict[str, Any]:
    """The mean regret of each method over search spaces, with its standard error, from what COMMAND left in DIR."""
    paths = {name: folder / "results" / f"{name}.json" for name in METHODS}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raise DataError(f"{folder} must hold what `{COMMAND}` wrote, but lacks results of {', '.join(missing)}")
    comparison = compare({name: read_results(path) for name, path in paths.items()})
    numbers = zip(comparison.average_regret("spaces"), comparison.standard_error("spaces"), strict=True)
    return {
        "command": COMMAND,
        "runs": len(comparison.runs),
        "tasks": len(set(comparison.tasks)),
        "spaces": len(comparison.spaces),
        "methods": {
            name: {"regret": _rounded(regret, 5), "error": _rounded(error, 5)}
            for name, (regret, error) in zip(comparison.methods, numbers, strict=True)
        },
    }


def read(path: Path) -> dict[str, Any]:
    """A stored result."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(path: Path, content: dict[str, Any]) -> None:
    """Stores a result, a series a line."""
    parts = [f"{json.dumps(key)}: {_lines(value)}" for key, value in content.items()]
    write_text(path, "{\n" + ",\n".join(parts) + "\n}\n")


def _lines(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n}"
    return json.dumps(value)


def _rounded(values: Any, digits: int) -> Any:
    """Nested lists; None for NaN, which JSON has no number for."""
    array = np.round(np.asarray(values, float), digits).astype(object)
    array[array != array] = None
    return array.tolist()
