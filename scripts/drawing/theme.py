"""Pictures for light and for dark pages, drawn twice on a transparent ground."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dre_jax.report.style import save

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


class Theme(NamedTuple):
    """Colours that differ between a light and a dark page."""

    name: str
    ink: str
    """Text, axes, and what the others are compared with."""
    faint: str
    """Grids and rules."""
    colours: tuple[str, ...]
    """Series; told apart with any colour vision (Okabe and Ito's, lighter on dark)."""


LIGHT = Theme("light", "#24292f", "#d0d7de", ("#0072B2", "#D55E00", "#009E73", "#A8578C", "#B57D00"))
DARK = Theme("dark", "#e6edf3", "#3d444d", ("#56B4E9", "#FF8C42", "#2CC295", "#E39BC6", "#E6B93C"))
THEMES = (LIGHT, DARK)

INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
PLAIN: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text as text: half the size, and readers can search it
}
Paint = Callable[["Figure", Theme], None]


def draw(folder: Path, name: str, size: tuple[float, float], paint: Paint) -> list[Path]:
    """Writes NAME-light.svg and NAME-dark.svg; returns their paths."""
    paths = {theme: folder / f"{name}-{theme.name}.svg" for theme in THEMES}
    for theme, path in paths.items():
        save(size, partial(_painted, paint, theme), path)
    return list(paths.values())


def plain_numbers(axis: Axis) -> None:
    """Labels a logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _painted(paint: Paint, theme: Theme, figure: Figure) -> None:
    import matplotlib

    own: dict[Any, Any] = dict.fromkeys(INKED, theme.ink)
    matplotlib.rcParams.update(own | PLAIN | {"grid.color": theme.faint})
    figure.patch.set_alpha(0.0)
    paint(figure, theme)
