"""What these figures share: one look, and both formats of every figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dre_jax.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOK = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
}


def save(size: tuple[float, float], paint: Callable[[Figure], None], folder: Path, name: str) -> None:
    """Paints a figure of `size` inches into NAME.png and NAME.svg."""

    def with_look(figure: Figure) -> None:
        import matplotlib

        with matplotlib.rc_context(LOOK):
            paint(figure)

    style.save(size, with_look, *(folder / f"{name}.{suffix}" for suffix in ("png", "svg")))
