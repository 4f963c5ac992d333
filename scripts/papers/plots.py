"""One look, and both formats of every figure of these reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dre_jax.report import style

LOOK: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.frameon": False,
}


def save(size: tuple[float, float], paint: Callable[[Any], None], folder: Path, name: str) -> None:
    """Paints a figure of `size` inches into NAME.png and NAME.svg."""

    def with_look(figure: Any) -> None:
        import matplotlib

        with matplotlib.rc_context(LOOK):
            paint(figure)

    style.save(size, with_look, *(folder / f"{name}.{suffix}" for suffix in ("png", "svg")))
