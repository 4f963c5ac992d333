"""A method's colour, dash and marker: the same in every figure, distinct with any colour vision and in grey print."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from dre_jax.data.files import atomic_writer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours without their yellow, which is too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
Dash = tuple[float, tuple[float, ...]]
DASHES: tuple[str | Dash, ...] = ("-", "--", "-.", (0.0, (1.2, 1.2)), (0.0, (8.0, 2.0, 1.5, 2.0, 1.5, 2.0)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LONGEST = 30


class Look(NamedTuple):
    """Colour, dash and marker of a method."""

    colour: str
    dash: str | Dash
    marker: str


def style(index: int) -> Look:
    """The look of the method at a position of `Comparison.methods`.

    Colours, dashes and markers repeat after 7, 5 and 9, which share no factor. The first 35 methods therefore differ in
    colour or dash. Without colour, the first 45 differ in dash or marker.

    >>> style(0)
    Look(colour='#0072B2', dash='-', marker='o')
    >>> style(7).colour == style(0).colour, style(7).dash, style(7).marker
    (True, '-.', '<')
    """
    return Look(COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)])


def line(index: int) -> dict[str, Any]:
    """The look as arguments of matplotlib's `plot`."""
    look = style(index)
    return {"color": look.colour, "linestyle": look.dash, "marker": look.marker, "markersize": 4.5, "linewidth": 1.6}


def display_name(name: str, longest: int = LONGEST) -> str:
    """A method's name as it stands in a figure: one line, and its middle left out where it is too long.

    >>> display_name("a-name-that-goes-on-and-on-for-ever", 16)
    'a-name-t…or-ever'
    """
    plain = "".join(c if c.isprintable() else " " for c in name).strip() or "(no name)"
    if len(plain) <= longest:
        return plain
    return f"{plain[: longest // 2]}…{plain[-(longest - longest // 2 - 1) :]}"


@contextlib.contextmanager
def fixed_settings(more: dict[Any, Any]) -> Iterator[None]:
    """Sets Matplotlib's defaults, not the user's settings; names are literal, and the SVG is always the same."""
    import matplotlib

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"text.parse_math": False, "svg.hashsalt": "dre_jax", "font.size": 9.0, **more})
        # A name may have letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


@contextlib.contextmanager
def new_figure(size: tuple[float, float], *paths: Path, **settings: Any) -> Iterator[Figure]:
    """Yields a figure of `size` inches to draw in, with more of Matplotlib's settings, and writes it as `write`."""
    from matplotlib.figure import Figure

    with fixed_settings(settings):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
    write(figure, *paths, **settings)


def write(figure: Figure, *paths: Path, **settings: Any) -> None:
    """Writes a figure, PNG or SVG by each path's ending. Raises `DataError` where a file cannot be written."""
    for path in paths:
        with atomic_writer(path) as file:
            write_to(file, figure, path.suffix[1:].lower(), **settings)


def write_to(file: BinaryIO, figure: Figure, kind: str = "png", **settings: Any) -> None:
    """Writes a figure to an open file, as ``png`` or ``svg``."""
    with fixed_settings(settings):
        figure.savefig(file, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    figure.set_layout_engine("none")  # keeps the layout of the first file, which takes half of the time
