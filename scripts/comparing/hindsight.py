"""The best method by hindsight: a bound on what choosing among the methods can give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markdown_tables import markdown_table, regret_cells

from dre_jax.report import Comparison
from dre_jax.report.comparison import Over

WHAT = """\
The lowest regret among the methods, chosen anew at each number of trials: in every run by itself, and on every task by
its mean over the initial designs. Whoever chooses among these methods has no less. Part of it is luck that nobody can
choose."""

_AVERAGES: Mapping[Over, str] = {"spaces": "search spaces", "runs": "runs"}


def by_hindsight(comparison: Comparison) -> Comparison:
    """The same runs of two oracles: one picks the best method of each run, one that of each task, at every trial."""
    regret, tasks = comparison.regret, list(dict.fromkeys(comparison.tasks))
    best = comparison.by_task(regret).argmin(axis=0)[[tasks.index(task) for task in comparison.tasks]]
    of_task = np.take_along_axis(regret, best[None], axis=0)[0]
    names = ("best method of each run", "best method of each task")
    return comparison._replace(methods=names, regret=np.stack([regret.min(axis=0), of_task]))


def hindsight_table(comparison: Comparison, at: Sequence[int]) -> str:
    """The oracles and the best single method at each trial, with the standard errors of their means."""
    oracles, rows = by_hindsight(comparison), []
    for over, title in _AVERAGES.items():
        rows += [
            [name, title, *cells] for name, cells in zip(oracles.methods, regret_cells(oracles, at, over), strict=True)
        ]
        means, told = comparison.average_regret(over), list(regret_cells(comparison, at, over))
        best = means[:, list(at)].argmin(axis=0)
        cells = (f"{told[i][j]} (`{comparison.methods[i]}`)" for j, i in enumerate(best))
        rows.append(["best single method", title, *cells])
    return markdown_table(["who", "mean over", *(f"regret at {t}" for t in at)], rows)
