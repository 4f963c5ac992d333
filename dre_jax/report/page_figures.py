"""The figures of the report page: embedded, with a caption and an alternative text."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import NamedTuple

from dre_jax.errors import DataError
from dre_jax.report.comparison import Comparison
from dre_jax.report.curves import LABELS, Quantity, band
from dre_jax.report.page_tables import number

# A grid of many methods is smaller as PNG, and a page of many megabytes is slow to open.
LARGEST_SVG = 700_000

TIES = (
    "Regret is rounded to 8 decimals and ranked within every run and trial; methods that tie share the mean of "
    "their ranks, and 1 is best."
)


class PageFigure(NamedTuple):
    """A figure as the page holds it."""

    name: str
    source: str
    """A data URI."""
    caption: str
    alternative: str


def page_figure(name: str, path: Path, comparison: Comparison) -> PageFigure:
    """Embeds a figure: the SVG beside the PNG if it is there and not large, else the PNG.

    Raises `DataError` where it cannot be read.
    """
    return PageFigure(name, _data_uri(path), _caption(name, comparison), _alternative(name, comparison))


def _data_uri(path: Path) -> str:
    vector = path.with_suffix(".svg")
    if os.path.isfile(vector) and vector.stat().st_size <= LARGEST_SVG:
        path = vector
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    kind = "svg+xml" if path.suffix == ".svg" else "png"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _caption(name: str, comparison: Comparison) -> str:
    runs = f"{len(comparison.runs)} runs"
    if name == "rank":
        return f"Average rank against trials, pooled over {runs}. {TIES} {band(comparison, 'rank')[1]}."
    if name == "regret":
        return f"Average regret against trials, pooled over {runs}. {band(comparison, 'regret')[1]}."
    if name == "rank-spaces":
        return f"Average rank against trials in each search space, without bands. {TIES}"
    if name == "regret-spaces":
        return "Average regret against trials in each search space, without bands; each panel has an axis of its own."
    return (
        f"Critical differences after {name.removeprefix('cd-')} trials: average rank of each method, better to the "
        "left; a bar joins methods of which no two differ significantly. The tests and their n stand in the figure."
    )


def _alternative(name: str, comparison: Comparison) -> str:
    if name not in ("rank", "regret"):
        return f"{_caption(name, comparison).split('.')[0]}. The numbers stand in the tables."
    kind: Quantity = "rank" if name == "rank" else "regret"
    last = (comparison.average_rank() if kind == "rank" else comparison.average_regret())[:, -1]
    values = ", ".join(f"{m} {number(v, 3)}" for m, v in zip(comparison.methods, last, strict=True))
    return f"Line chart: {LABELS[kind]} against trials. After {comparison.n_trials} trials: {values}."
