"""The tables of the report page, as data."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.report.comparison import Comparison, Over
from dre_jax.report.critical_difference import probability
from dre_jax.report.statistics import Significance


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    strong: bool = False
    """Best of its column or row, or significant."""


class Table(NamedTuple):
    """A table; the first cell of each row is its heading."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def number(value: float, digits: int = 4) -> str:
    """A number for a reader; small ones keep two digits.

    >>> number(0.02094), number(0.0000213), number(0.0)
    ('0.0209', '2.1e-05', '0.0000')
    """
    if math.isnan(value):
        return "–"
    small = 0 < abs(value) < 0.5 * 10.0 ** (1 - digits)
    return f"{value:.1e}" if small else f"{value:.{digits}f}"


def _numbers(
    values: npt.NDArray[np.float64], digits: int = 4, errors: npt.NDArray[np.float64] | None = None
) -> list[Cell]:
    """Cells of numbers, each with its error if it has one; the least of several is strong."""
    least = (np.round(values, 8) == np.round(values, 8).min()) & (len(values) > 1)
    texts = [number(value, digits) for value in values]
    if errors is not None:
        texts = [t if math.isnan(e) else f"{t} ± {number(e, digits)}" for t, e in zip(texts, errors, strict=True)]
    return [Cell(text, bool(best)) for text, best in zip(texts, least, strict=True)]


def averages(comparison: Comparison, at: Sequence[int], over: Over) -> Table:
    """Average regret with its standard error, where there is one, and average rank."""
    regret, rank = comparison.average_regret(over), comparison.average_rank(over)
    error = comparison.standard_error(over)
    by_column = [_numbers(regret[:, t], errors=error[:, t]) for t in at] + [_numbers(rank[:, t], 3) for t in at]
    rows = zip(map(Cell, comparison.methods), *by_column, strict=True)
    columns = ("Method", *(f"Regret at {t}" for t in at), *(f"Rank at {t}" for t in at))
    if over == "runs":
        caption, unit = f"Average over all {len(comparison.runs)} runs, pooled", "tasks"
    else:
        caption = f"Mean over the {len(comparison.spaces)} search spaces, each counted once"
        unit = "the tasks within each search space"
    note = "" if np.isnan(error).any() else f"± 1 standard error over {unit}. "
    return Table(caption, columns, tuple(rows), f"{note}Best of each column in bold; lower is better.")


def wins(comparison: Comparison, reference: str, at: Sequence[int]) -> Table:
    """The reference against each other method: runs won, tied and lost."""
    counts = {trial: comparison.win_tie_loss(reference, trial) for trial in at}
    rows = []
    for name in comparison.methods:
        if name != reference:
            against = [counts[t][name] for t in at]
            cells = [Cell(f"{c.wins} / {c.ties} / {c.losses}", c.wins > c.losses) for c in against]
            rows.append((Cell(name), *cells))
    return Table(
        f"Runs that {reference} wins / ties / loses",
        ("Against", *(f"At {t}" for t in at)),
        tuple(rows),
        f"Of {len(comparison.runs)} runs; regret equal to 8 decimals is a tie. Bold: more won than lost.",
    )


def differences(comparison: Comparison, reference: str, at: Sequence[int]) -> Table:
    """How much more regret than the reference each other method has, paired by run, with its standard error."""
    paired = comparison.differences(reference)
    mean, error = paired.average_regret(), paired.standard_error()
    rows = []
    for i, name in enumerate(comparison.methods):
        if name != reference:
            parts = [(float(mean[i, t]), float(error[i, t])) for t in at]
            rows.append((Cell(name), *(Cell(difference(m, e), m - 2 * e > 0) for m, e in parts)))
    return Table(
        f"Regret minus that of {reference}, paired by run",
        ("Method", *(f"At {t}" for t in at)),
        tuple(rows),
        f"± 1 standard error over {len(set(comparison.tasks))} tasks. Bold: more by two errors.",
    )


def difference(mean: float, error: float) -> str:
    """A paired difference with its sign and its error, if it has one.

    >>> difference(0.0123, 0.004), difference(-0.001, math.nan)
    ('+0.0123 ± 0.0040', '-0.0010')
    """
    return f"{mean:+.4f}" + ("" if math.isnan(error) else f" ± {error:.4f}")


def spaces(comparison: Comparison, trial: int) -> Table:
    """Average regret of every method in every search space."""
    rows = []
    for space in comparison.spaces:
        part = comparison.of_space(space)
        rows.append((Cell(space), Cell(str(len(set(part.tasks)))), *_numbers(part.average_regret()[:, trial])))
    return Table(
        f"Average regret after {trial} trials, by search space",
        ("Search space", "Tasks", *comparison.methods),
        tuple(rows),
        "Best of each row in bold.",
    )


def pairs(comparison: Comparison, tests: Significance) -> Table:
    """The matrix of Holm-adjusted p-values of Wilcoxon's test, best average rank first."""
    order = np.argsort(tests.average_rank, kind="stable").tolist()

    def cell(i: int, j: int) -> Cell:
        p = float(tests.wilcoxon_p[i, j])
        return Cell("·") if i == j else Cell(probability(p), p <= tests.alpha)

    names, ranks = comparison.methods, tests.average_rank
    rows = tuple((Cell(names[i]), Cell(number(ranks[i], 3)), *(cell(i, j) for j in order)) for i in order)
    return Table(
        f"After {tests.trial} trials: p-values of all pairs over {tests.n} {tests.unit}",
        ("Method", "Rank", *(tests.methods[j] for j in order)),
        rows,
        f"Two-sided Wilcoxon signed-rank tests, adjusted after Holm; bold where p ≤ {tests.alpha:g}.",
    )


def friedman(significances: Mapping[int, Significance]) -> Table:
    """Friedman's test at every trial of one unit."""
    rows = tuple(
        (
            Cell(f"After {trial} trials"),
            Cell(str(tests.n)),
            Cell(number(tests.friedman_statistic, 1)),
            Cell(probability(tests.friedman_p), tests.friedman_p <= tests.alpha),
        )
        for trial, tests in sorted(significances.items())
    )
    return Table(
        "Friedman's test that no method differs",
        ("Trial", "n", "χ²", "p"),
        rows,
        "A dash: not defined with fewer than three methods or two observations.",
    )
