"""The two figures of a comparison that are most often wanted alone."""

from __future__ import annotations

from pathlib import Path

from dre_jax.benchmark.compare import Comparison
from dre_jax.benchmark.curves import curves_data, draw_curves


def draw_regret(comparison: Comparison, path: Path, title: str) -> None:
    """Average regret against trials on a logarithmic axis, a band of one standard error over tasks; PNG or SVG."""
    draw_curves(curves_data(comparison, "regret", title), path)


def draw_rank(comparison: Comparison, path: Path, title: str) -> None:
    """Average rank against trials, a band of one standard error over tasks; PNG or SVG."""
    draw_curves(curves_data(comparison, "rank", title), path)
