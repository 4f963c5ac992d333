"""Finished studies in a file, one line each: a command that is run again resumes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

Study = TypeVar("Study")


def read_studies(path: Path, make: Callable[..., Study]) -> dict[Study, list[float]]:
    """Returns the values of the studies in a file, by study; ``make`` gets the fields. A line cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith(("]]", "]}"))]
    fields = [list(row.values()) if isinstance(row, dict) else row for row in rows]
    return {make(*study): values for *study, values in fields}


def append_study(path: Path, study: Iterable[object], values: Sequence[float]) -> None:
    """Adds a study, its fields and its values, to a file."""
    with path.open("a") as file:
        file.write(json.dumps([*study, values]) + "\n")
