"""Every figure of a comparison, as PNG and as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dre_jax.data.files import make_folder
from dre_jax.report.comparison import Comparison
from dre_jax.report.critical_difference import diagram_data, draw_diagram
from dre_jax.report.curves import Quantity, curves_data, draw_curves, draw_grid, grid_data
from dre_jax.report.statistics import Significance


def draw_all(
    comparison: Comparison,
    significance_by_trial: Mapping[int, Significance],
    out: Path,
    title: str,
    grids: Sequence[Quantity] = ("rank", "regret"),
) -> dict[str, Path]:
    """Draws `rank`, `regret`, `rank-spaces`, `regret-spaces` and a `cd-<trial>` for every trial given.

    A method's position in the comparison decides its look in every figure. The folder `out` is made if it is missing;
    `grids` are what is drawn by search space. Returns the PNG's path by name; the SVG is beside it. Raises `DataError`
    where a file cannot be written.
    """
    make_folder(out)
    paths: dict[str, Path] = {}

    def both(name: str) -> tuple[Path, Path]:
        paths[name] = out / f"{name}.png"
        return paths[name], out / f"{name}.svg"

    kinds: tuple[Quantity, ...] = ("rank", "regret")
    for kind in kinds:
        draw_curves(curves_data(comparison, kind, title), *both(kind))
    for kind in grids:
        draw_grid(grid_data(comparison, kind), f"{title}, by search space", *both(f"{kind}-spaces"))
    for trial, significance in sorted(significance_by_trial.items()):
        data = diagram_data(significance, comparison.methods, f"{title}, after {trial} trials")
        draw_diagram(data, *both(f"cd-{trial}"))
    return paths
