"""Shared parts of the scripts: finished studies in a file, the tables of pages, and errors in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from dre_jax.errors import DreError

Study = TypeVar("Study")


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Ends the program with status 2 and one line on standard error where the library refuses what it was given."""
    try:
        yield
    except DreError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def read_studies(path: Path, make: Callable[..., Study]) -> dict[Study, list[float]]:
    """Returns the values of the studies in a file, by study; ``make`` gets the fields. A line cut short is left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith(("]]", "]}"))]
    fields = [list(row.values()) if isinstance(row, dict) else row for row in rows]
    return {make(*study): values for *study, values in fields}


def append_study(path: Path, study: Iterable[object], values: Sequence[float]) -> None:
    """Adds a study, its fields and its values, to a file: a command that is run again resumes."""
    with path.open("a") as file:
        file.write(json.dumps([*study, values]) + "\n")


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in heads[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def mean_cell(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """The mean of f64[n], with the standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"
