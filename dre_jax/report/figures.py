"""Every figure of a comparison: drawn as PNG and as SVG, and embedded in the report page."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dre_jax.data.files import make_folder, open_binary
from dre_jax.report.comparison import Comparison
from dre_jax.report.critical_difference import draw_diagram
from dre_jax.report.curves import Quantity, band, curves_data, draw_panels, grid_data
from dre_jax.report.statistics import Significance

# A grid of many methods is smaller as PNG, and a page of many megabytes is slow to open.
LARGEST_SVG = 700_000

TIES = (
    "Regret is rounded to 8 decimals and ranked within every run and trial; methods that tie share the mean of "
    "their ranks, and 1 is best."
)


class PageFigure(NamedTuple):
    """A figure as the page holds it."""

    source: str
    """A data URI."""
    caption: str
    alternative: str


def page_figure(name: str, path: Path, comparison: Comparison) -> PageFigure:
    """Embeds a figure: the SVG beside the PNG if it is there and not large, else the PNG.

    Raises `DataError` where it cannot be read.
    """
    vector = path.with_suffix(".svg")
    if os.path.isfile(vector) and vector.stat().st_size <= LARGEST_SVG:
        path = vector
    with open_binary(path) as stream:
        source = data_uri(stream.read(), "svg+xml" if path.suffix == ".svg" else "png")
    caption = _caption(name, comparison)
    return PageFigure(source, caption, f"{caption.split('.')[0]}. The numbers stand in the tables.")


def data_uri(content: bytes, kind: str) -> str:
    """Returns an image, of the kind ``png`` or ``svg+xml``, as a URI."""
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


def draw_all(
    comparison: Comparison, significance_by_trial: Mapping[int, Significance], out: Path, title: str
) -> dict[str, Path]:
    """Draws `rank`, `regret`, `rank-spaces`, `regret-spaces` and a `cd-<trial>` for every trial with tests.

    A method's position in the comparison decides its look in every figure. The folder `out` is created if missing.
    Returns the PNG's path by name; the SVG is beside it. Raises `DataError` where a file cannot be written.
    """
    make_folder(out)
    paths: dict[str, Path] = {}

    def add_paths(name: str) -> tuple[Path, Path]:
        paths[name] = out / f"{name}.png"
        return paths[name], out / f"{name}.svg"

    kinds: tuple[Quantity, ...] = ("rank", "regret")
    for kind in kinds:
        draw_panels([curves_data(comparison, kind)], title, *add_paths(kind))
    for kind in kinds:
        draw_panels(grid_data(comparison, kind), f"{title}, by search space", *add_paths(f"{kind}-spaces"))
    for trial, tests in sorted(significance_by_trial.items()):
        draw_diagram(tests, comparison.methods, f"{title}, after {trial} trials", *add_paths(f"cd-{trial}"))
    return paths
