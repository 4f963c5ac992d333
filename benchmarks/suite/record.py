"""Rows as they are kept: a row that fails says why, and the others are measured nevertheless."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.suite.peers import PeerError
from benchmarks.suite.plan import Bench, Measure
from benchmarks.suite.rows import Row
from dre_jax.data.files import write_json


def record(name: str, measure: Measure, bench: Bench) -> dict[str, Any]:
    """Measures a row."""
    try:
        return measure(bench, name).as_json()
    except (PeerError, RuntimeError, MemoryError) as error:
        words = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0] if words else ''}"
        print(f"{name} failed: {reason}", file=sys.stderr)
        return {**Row(name=name, unit="failed").as_json(), "error": reason}


def write(path: Path, environment: dict[str, Any], rows: Sequence[dict[str, Any]], **more: Any) -> None:
    """The file of a benchmark; ``more`` are further keys, left out where they are empty."""
    further = {name: value for name, value in more.items() if value}
    write_json(path, {"environment": environment, "rows": list(rows), **further}, indent=1)
