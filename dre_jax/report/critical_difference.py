"""Critical-difference diagrams: methods on an axis of average rank, bars over those that do not differ.

The layout is that of Demšar (2006), computed in inches before anything is drawn.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dre_jax.report.statistics import Significance
from dre_jax.report.style import display_name, save, style, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
AXIS_WIDTH = 4.6
ROW = 0.22
BAR_ROW = 0.14
TITLE_ROW = 0.18
EDGE = 0.15
# Points.
LABEL_SIZE = 9.0
# A space at which no line is broken.
NB = "\u00a0"


class Leader(NamedTuple):
    """One method: a line from its rank down to its row, then out to its name."""

    method: str
    position: int
    """Its position in `Comparison.methods`, which decides its look."""
    rank: float
    left: bool
    """True where the name stands on the left."""
    row: int
    """0 is the row nearest to the axis; a row holds one name a side at most."""


class Bar(NamedTuple):
    """Methods among which no pair differs; bars of one row do not touch."""

    methods: tuple[str, ...]
    low: float
    high: float
    row: int


class Diagram(NamedTuple):
    """The layout of a diagram."""

    title: str
    low: float
    high: float
    """Ends of the axis, whole ranks."""
    leaders: tuple[Leader, ...]
    """Best first."""
    bars: tuple[Bar, ...]
    note: str
    """The tests, what they were made over, and what a bar says."""


def diagram_data(significance: Significance, methods: Sequence[str], title: str) -> Diagram:
    """The layout. `methods` is `Comparison.methods`: a method's position there decides its look."""
    ranks = dict(zip(significance.methods, map(float, significance.average_rank), strict=True))
    order = sorted(ranks, key=lambda method: (ranks[method], methods.index(method)))
    half = (len(order) + 1) // 2
    leaders = tuple(
        Leader(method, methods.index(method), ranks[method], i < half, i if i < half else len(order) - 1 - i)
        for i, method in enumerate(order)
    )
    low, high = math.floor(min(ranks.values())), math.ceil(max(ranks.values()))
    return Diagram(title, low, max(high, low + 1), leaders, _bars(significance, ranks, low, high), _note(significance))


def _bars(significance: Significance, ranks: dict[str, float], low: float, high: float) -> tuple[Bar, ...]:
    gap = 0.03 * max(1.0, high - low)
    spans = sorted(
        ((min(ranks[m] for m in clique), max(ranks[m] for m in clique), clique) for clique in significance.cliques),
        key=lambda span: span[:2],
    )
    ends: list[float] = []  # of the last bar of each row
    bars = []
    for first, last, clique in (span for span in spans if len(span[2]) > 1):
        row = next((i for i, end in enumerate(ends) if end + gap < first), len(ends))
        ends[row : row + 1] = [last]
        bars.append(Bar(tuple(clique), first, last, row))
    return tuple(bars)


def _note(significance: Significance) -> str:
    if math.isnan(significance.friedman_p):
        friedman = "Friedman's test needs three methods or more."
    else:
        friedman = (
            f"Friedman's test over {significance.n} {significance.unit}: χ²{NB}={NB}"
            f"{significance.friedman_statistic:.1f}, p{NB}{probability(significance.friedman_p, sign=True)}."
        )
    over = f"{significance.n} {significance.unit}"
    ranked = "a task's regret, the mean over its designs" if significance.unit == "tasks" else "each run's regret"
    return (
        f"Ranks are of {ranked}; 1 is best. {friedman} A bar joins methods of which no two differ: "
        f"Wilcoxon's signed-rank test over {over}, p-values after Holm, α{NB}={NB}{significance.alpha:g}."
    )


def probability(p: float, *, sign: bool = False) -> str:
    r"""A p-value for a reader, after "p" with `sign`.

    >>> probability(0.0421), probability(3.2e-9), probability(0.0), probability(float("nan"))
    ('0.042', '3.2e-09', '<\xa01e-300', '–')
    """
    if math.isnan(p):
        text = "–"
    elif p >= 0.001:
        text = f"{p:.3f}"
    else:
        text = f"{p:.1e}" if p >= 1e-300 else f"<{NB}1e-300"
    return text if not sign or text.startswith("<") else f"={NB}{text}"


def draw_diagram(data: Diagram, *paths: Path) -> None:
    """Draws it; PNG or SVG by each path's ending."""
    inner = EDGE + text_width([_label(leader) for leader in data.leaders], LABEL_SIZE) + 0.12
    margin = max(inner + 0.2, 0.85)
    width = AXIS_WIDTH + 2 * margin
    title = textwrap.wrap(data.title, round(12 * width))
    top = 0.1 + TITLE_ROW * len(title) + 0.4
    note = textwrap.wrap(data.note, round(15.5 * width))
    names = top + 0.12 + BAR_ROW * (1 + max((bar.row for bar in data.bars), default=-1)) + 0.16
    height = names + ROW * (1 + max(leader.row for leader in data.leaders)) + 0.17 * len(note) + 0.1

    def paint(figure: Figure) -> None:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0.0, width)
        axes.set_ylim(height, 0.0)
        axes.set_axis_off()
        axes.text(width / 2, 0.1, "\n".join(title), ha="center", va="top", fontsize=10.5)
        _ruler(axes, data, margin, top)
        for leader in data.leaders:
            start = (_at(data, leader.rank, margin), top)
            _leader(axes, leader, start, (inner if leader.left else width - inner, names + ROW * (leader.row + 0.5)))
        for bar in data.bars:
            y = top + 0.12 + BAR_ROW * (bar.row + 0.5)
            ends = (_at(data, bar.low, margin) - 0.05, _at(data, bar.high, margin) + 0.05)
            axes.plot(ends, (y, y), color="#333333", linewidth=3.6, solid_capstyle="butt", zorder=3)
        axes.text(EDGE, height - 0.08, "\n".join(note), va="bottom", fontsize=8, color="#333333", linespacing=1.25)

    save((width, height), paint, *paths)


def _at(data: Diagram, rank: float, margin: float) -> float:
    return margin + AXIS_WIDTH * (rank - data.low) / (data.high - data.low)


def _ruler(axes: Axes, data: Diagram, margin: float, top: float) -> None:
    axes.plot((margin, margin + AXIS_WIDTH), (top, top), color="black", linewidth=1.0)
    steps = round(data.high - data.low)
    parts = 4 if steps <= 3 else 2 if steps <= 10 else 1
    for i in range(steps * parts + 1):
        rank, whole = data.low + i / parts, i % parts == 0
        x = _at(data, rank, margin)
        axes.plot((x, x), (top - (0.09 if whole else 0.05), top), color="black", linewidth=0.8)
        if whole:
            axes.text(x, top - 0.12, f"{rank:g}", ha="center", va="bottom", fontsize=8.5)
    axes.text(margin - 0.12, top, "← better", ha="right", va="center", fontsize=8, color="#333333")
    axes.text(margin + AXIS_WIDTH + 0.12, top, "average rank", ha="left", va="center", fontsize=8, color="#333333")


def _leader(axes: Axes, leader: Leader, start: tuple[float, float], end: tuple[float, float]) -> None:
    look = style(leader.position)
    axes.plot((start[0], start[0], end[0]), (start[1], end[1], end[1]), color=look.colour, linewidth=1.2)
    ends = ((start[0], end[0]), (start[1], end[1]))
    axes.plot(*ends, color=look.colour, marker=look.marker, markersize=5, linestyle="none", zorder=4)
    towards, side = (-0.09, "right") if leader.left else (0.09, "left")
    axes.text(end[0] + towards, end[1], _label(leader), ha=side, va="center", fontsize=LABEL_SIZE)


def _label(leader: Leader) -> str:
    return f"{display_name(leader.method)}  {leader.rank:.2f}"
