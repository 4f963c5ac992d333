"""The tables of the report page, as data: the text of each cell and the value it is sorted by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.report.comparison import Comparison, Over
from dre_jax.report.critical_difference import probability
from dre_jax.report.statistics import Significance
from dre_jax.report.style import style


class Key(NamedTuple):
    """A method's look, as SVG has it."""

    colour: str
    """The text's colour for black, which shows on a dark page too."""
    dashes: str


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    value: float | str
    """Sort key of the column."""
    strong: bool = False
    """Best of its column or row, or significant."""
    key: Key | None = None


class Table(NamedTuple):
    """A table; the first cell of each row is its heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    sortable: bool = True
    words: bool = False
    """True for cells of sentences, which are broken into lines, rather than numbers."""


def key(index: int) -> Key:
    """The look of the method at a position of `Comparison.methods`."""
    look = style(index)
    named = {"-": "", "--": "7 3", "-.": "8 3 2.5 3"}
    dashes = named[look.dash] if isinstance(look.dash, str) else " ".join(f"{2 * part:g}" for part in look.dash[1][:4])
    return Key("currentColor" if look.colour == "#000000" else look.colour, dashes)


def number(value: float, digits: int = 4) -> str:
    """A number for a reader; small ones keep two digits.

    >>> number(0.02094), number(0.0000213), number(0.0)
    ('0.0209', '2.1e-05', '0.0000')
    """
    if math.isnan(value):
        return "–"
    small = 0 < abs(value) < 0.5 * 10.0 ** (1 - digits)
    return f"{value:.1e}" if small else f"{value:.{digits}f}"


def _name(comparison: Comparison, method: str) -> Cell:
    return Cell(method, method, key=key(comparison.methods.index(method)))


def averages(comparison: Comparison, at: Sequence[int], over: Over) -> Table:
    """Average regret with its standard error, where there is one, and average rank."""
    regret, rank = comparison.average_regret(over), comparison.average_rank(over)
    error = comparison.standard_error(over)
    rows = []
    for i, method in enumerate(comparison.methods):
        cells = [_name(comparison, method)]
        for trial in at:
            text = number(regret[i, trial])
            text += "" if math.isnan(error[i, trial]) else f" ± {number(error[i, trial])}"
            cells.append(Cell(text, float(regret[i, trial]), _is_least(regret[:, trial], i)))
        cells += [Cell(number(v := rank[i, t], 3), float(v), _is_least(rank[:, t], i)) for t in at]
        rows.append(tuple(cells))
    columns = ("Method", *(f"Regret at {t}" for t in at), *(f"Rank at {t}" for t in at))
    if over == "runs":
        caption, of = f"Average over all {len(comparison.runs)} runs, pooled", "tasks"
    else:
        caption = f"Mean over the {len(comparison.spaces)} search spaces, each counted once"
        of = "the tasks within each search space"
    note = "" if np.isnan(error).any() else f"± 1 standard error over {of}. "
    return Table(caption, columns, tuple(rows), f"{note}Best of each column in bold; lower is better.")


def _is_least(values: npt.NDArray[np.float64], i: int) -> bool:
    return bool(np.round(values[i], 8) == np.round(values, 8).min()) and len(values) > 1


def wins(comparison: Comparison, reference: str, at: Sequence[int]) -> Table:
    """The reference against each other method: runs won, tied and lost."""
    counts = {trial: comparison.win_tie_loss(reference, trial) for trial in at}
    rows = tuple(
        (
            _name(comparison, other),
            *(
                Cell(f"{(c := counts[t][other]).wins} / {c.ties} / {c.losses}", c.wins - c.losses, c.wins > c.losses)
                for t in at
            ),
        )
        for other in comparison.methods
        if other != reference
    )
    return Table(
        f"Runs that {reference} wins / ties / loses",
        ("Against", *(f"At {t}" for t in at)),
        rows,
        f"Of {len(comparison.runs)} runs; regret equal to 8 decimals is a tie. Bold: more won than lost. "
        "Sorted by won less lost.",
    )


def spaces(comparison: Comparison, trial: int) -> Table:
    """Average regret of every method in every search space."""
    rows = []
    for space in comparison.spaces:
        part = comparison.of_space(space)
        regret = part.average_regret()[:, trial]
        cells = [Cell(number(v), float(v), _is_least(regret, i)) for i, v in enumerate(regret)]
        tasks = len(set(part.tasks))
        rows.append((Cell(space, space), Cell(str(tasks), tasks), *cells))
    return Table(
        f"Average regret after {trial} trials, by search space",
        ("Search space", "Tasks", *comparison.methods),
        tuple(rows),
        "Best of each row in bold.",
    )


def pairs(comparison: Comparison, tests: Significance) -> Table:
    """The matrix of Holm-adjusted p-values of Wilcoxon's test, best average rank first."""
    order = sorted(range(len(tests.methods)), key=lambda i: float(tests.average_rank[i]))

    def cell(i: int, j: int) -> Cell:
        p = float(tests.wilcoxon_p[i, j])
        return Cell("·", 2.0) if i == j else Cell(probability(p), p, p <= tests.alpha)

    rows = tuple(
        (
            _name(comparison, tests.methods[i]),
            Cell(number(rank := float(tests.average_rank[i]), 3), rank),
            *(cell(i, j) for j in order),
        )
        for i in order
    )
    return Table(
        f"After {tests.trial} trials: p-values of all pairs over {tests.n} {tests.unit}",
        ("Method", "Rank", *(tests.methods[j] for j in order)),
        rows,
        f"Two-sided Wilcoxon signed-rank tests, adjusted after Holm; bold where p ≤ {tests.alpha:g}.",
        sortable=False,
    )


def friedman(significances: Mapping[int, Significance]) -> Table:
    """Friedman's test at every trial of one unit."""
    rows = tuple(
        (
            Cell(f"After {trial} trials", trial),
            Cell(str(tests.n), tests.n),
            Cell(number(tests.friedman_statistic, 1), tests.friedman_statistic),
            Cell(probability(tests.friedman_p), tests.friedman_p, tests.friedman_p <= tests.alpha),
        )
        for trial, tests in sorted(significances.items())
    )
    return Table(
        "Friedman's test that no method differs",
        ("Trial", "n", "χ²", "p"),
        rows,
        "A dash: not defined with fewer than three methods or two observations.",
        sortable=False,
    )
