"""Critical-difference diagrams (Demšar 2006): methods on an axis of average rank, bars over those that are alike."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dre_jax.report.statistics import Significance
from dre_jax.report.style import display_name, new_figure, style

BAR_ROW = 0.6
"""Height of a row of bars; that of a row with names is 1."""
# A space at which no line is broken.
NB = "\u00a0"


class Bar(NamedTuple):
    """Methods among which no pair differs; bars of one row do not touch."""

    low: float
    high: float
    row: int


def bars(significance: Significance) -> tuple[Bar, ...]:
    """The bars of a diagram, each in the first row with room for it."""
    ranks = dict(zip(significance.methods, map(float, significance.average_rank), strict=True))
    gap = 0.03 * max(1.0, max(ranks.values()) - min(ranks.values()))
    ends: list[float] = []  # of the last bar of each row
    bars = []
    for clique in significance.cliques:
        low, high = ranks[clique[0]], ranks[clique[-1]]
        row = next((i for i, end in enumerate(ends) if end + gap < low), len(ends))
        ends[row : row + 1] = [high]
        bars.append(Bar(low, high, row))
    return tuple(bars)


def describe_tests(significance: Significance) -> str:
    """The tests of a diagram, their unit, and the meaning of a bar."""
    over = f"{significance.n} {significance.unit}"
    friedman = "Friedman's test needs three methods or more."
    if not math.isnan(significance.friedman_p):
        p = probability(significance.friedman_p, sign=True)
        friedman = f"Friedman's test over {over}: χ²{NB}={NB}{significance.friedman_statistic:.1f}, p{NB}{p}."
    observation = "a task's regret, the mean over its designs" if significance.unit == "tasks" else "each run's regret"
    return (
        f"Ranks are of {observation}; 1 is best. {friedman} A bar joins methods of which no two differ: "
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


def draw_diagram(significance: Significance, methods: Sequence[str], title: str, *paths: Path) -> None:
    """Draws a diagram; PNG or SVG by each path's ending. A method's position in `methods` decides its look."""
    ranks = dict(zip(significance.methods, map(float, significance.average_rank), strict=True))
    order = sorted(ranks, key=lambda method: (ranks[method], methods.index(method)))
    low = math.floor(ranks[order[0]])
    high = max(math.ceil(ranks[order[-1]]), low + 1)
    pad = 0.01 * (high - low)
    n_left = (len(order) + 1) // 2
    all_bars = bars(significance)
    first_name = 1.0 + BAR_ROW * (1 + max((bar.row for bar in all_bars), default=-1))
    note = textwrap.fill(describe_tests(significance), 125)
    with new_figure((8.0, 1.0 + 0.22 * (first_name + n_left) + 0.15 * note.count("\n")), *paths) as figure:
        from matplotlib.ticker import AutoMinorLocator, MultipleLocator

        figure.suptitle(textwrap.fill(title, 90), fontsize=10.5)
        figure.supxlabel(note, fontsize=8)
        axes = figure.add_subplot()
        axes.set(xlim=(low, high), ylim=(first_name + n_left - 0.5, 0.0), yticks=[])
        axes.xaxis.tick_top()
        axes.xaxis.set_major_locator(MultipleLocator(1))
        axes.xaxis.set_minor_locator(AutoMinorLocator(2))
        axes.spines[["left", "right", "bottom"]].set_visible(False)
        axes.text(low - 3 * pad, 0.0, "← better", ha="right", va="center", fontsize=8)
        axes.text(high + 3 * pad, 0.0, "average rank", ha="left", va="center", fontsize=8)
        for i, method in enumerate(order):
            rank, look, left = ranks[method], style(methods.index(method)), i < n_left
            row = first_name + (i if left else len(order) - 1 - i)
            end, sign = (low - 3 * pad, -1) if left else (high + 3 * pad, 1)
            axes.plot((rank, rank, end), (0.0, row, row), color=look.colour, linewidth=1.2, clip_on=False)
            axes.plot((rank, end), (0.0, row), look.marker, color=look.colour, markersize=5, clip_on=False, zorder=4)
            label = f"{display_name(method)}  {rank:.2f}"
            axes.text(end + 2 * sign * pad, row, label, ha="right" if left else "left", va="center")
        for bar in all_bars:
            y = 0.7 + BAR_ROW * bar.row
            axes.hlines(y, bar.low - pad, bar.high + pad, color="#333333", linewidth=3.6, zorder=3)
