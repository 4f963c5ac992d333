"""Results that pictures are drawn from, kept as small JSON files beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data import read_results
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
            name: {"regret": np.round(regret, 5).tolist(), "error": np.round(error, 5).tolist()}
            for name, (regret, error) in zip(comparison.methods, numbers, strict=True)
        },
    }
