"""Shared by these reports: tables, one look, and both formats of every figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOK: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
}


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def save(size: tuple[float, float], paint: Callable[[Figure], None], folder: Path, name: str) -> None:
    """Paints a figure of `size` inches into NAME.png and NAME.svg."""

    def with_look(figure: Figure) -> None:
        import matplotlib

        with matplotlib.rc_context(LOOK):
            paint(figure)

    style.save(size, with_look, *(folder / f"{name}.{suffix}" for suffix in ("png", "svg")))
