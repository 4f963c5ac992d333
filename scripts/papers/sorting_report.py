"""The inverse-mapping case study as a table and a figure, beside the thesis' numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import markdown_table

from dre_jax.report.style import style
from papers.plots import save
from papers.sorting import RANGES, Measured

# Epochs, list size -> accuracy in the order of RANGES: the thesis' table, means of five runs.
THESIS = {
    (1000, 3): (0.99, 0.27, 0.40),
    (100, 3): (0.77, 0.29, 0.11),
    (100, 30): (0.80, 0.79, 0.46),
    (100, 100): (0.99, 0.00, 0.39),
    (1000, 100): (1.00, 0.71, 0.48),
}
CASE_STUDY = ("ListMLE", "ListMLE, rate 1e-4", "ListMLE, free range")


def spread(values: np.ndarray) -> float:
    """Standard deviation over seeds; 0 for one seed."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def table(measured: list[Measured]) -> str:
    head = ["loss", "list size", "epochs", *RANGES, *(f"pairs {name}" for name in RANGES), "thesis"]
    rows = []
    for m in measured:
        accuracy = [f"{v.mean():.2f} ± {spread(v):.2f}" for v in m.accuracy.values()]
        pairs = [f"{v.mean():.3f}" for v in m.pairs.values()]
        thesis = THESIS.get((m.epochs, m.list_size)) if m.arm in CASE_STUDY else None
        quoted = " / ".join(f"{v:.2f}" for v in thesis) if thesis else "–"
        rows.append([m.arm, str(m.list_size), str(m.epochs), *accuracy, *pairs, quoted])
    return markdown_table(head, rows)


def as_json(measured: list[Measured]) -> list[dict[str, Any]]:
    return [{"loss": m.arm, **{key: value for key, value in m._asdict().items() if key != "arm"}} for m in measured]


def draw(measured: list[Measured], folder: Path, name: str) -> None:
    """Accuracy by range (columns), epochs (rows), list size and loss, with the thesis' numbers; NAME.png and .svg."""
    rows = len({m.epochs for m in measured})
    save((9.6, 2.4 * rows + 1.0), lambda figure: _paint(figure, measured), folder, name)


def _paint(figure: Any, measured: list[Measured]) -> None:
    epochs, sizes = (sorted({getattr(m, name) for m in measured}) for name in ("epochs", "list_size"))
    arms = list(dict.fromkeys(m.arm for m in measured))
    grid = figure.subplots(len(epochs), len(RANGES), sharex=True, sharey=True, squeeze=False)
    legend: dict[str, Any] = {}
    for row, e in zip(grid, epochs, strict=True):
        for axes, (i, (where, (low, high))) in zip(row, enumerate(RANGES.items()), strict=True):
            for j, arm in enumerate(arms):
                mine = [m for m in measured if m.arm == arm and m.epochs == e]
                legend[arm] = _points(axes, mine, where, sizes, j, len(arms))
            for position, n in enumerate(sizes):
                if (e, n) in THESIS:
                    ends = [position - 0.45, position + 0.45]
                    (legend["thesis (ListMLE)"],) = axes.plot(ends, [THESIS[e, n][i]] * 2, color="0.3", lw=1.4, ls=":")
            axes.set_title(f"{where} ({low:g} to {high:g}), {e} epochs")
            axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
            axes.set(xlim=(-0.5, len(sizes) - 0.5), ylim=(-0.03, 1.03))
            axes.grid(axis="x", visible=False)
    for axes in grid[-1]:
        axes.set_xlabel("numbers in a list")
    figure.supylabel("share of lists sorted (mean ± deviation over seeds)", fontsize=9)
    figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=4)


def _points(axes: Any, measured: list[Measured], where: str, sizes: list[int], j: int, count: int) -> Any:
    """One loss: a point with its spread at each list size, beside those of the other losses."""
    x = [sizes.index(m.list_size) + (j - (count - 1) / 2) * 0.8 / count for m in measured]
    y = np.array([m.accuracy[where].mean() for m in measured])
    wide = np.array([spread(m.accuracy[where]) for m in measured])
    bars = np.stack([np.minimum(wide, y), np.minimum(wide, 1 - y)])  # a share stays within 0 and 1
    look = style(j)
    return axes.errorbar(x, y, bars, fmt=look.marker, color=look.colour, ms=4.5, lw=1, capsize=2)
