"""The table of methods: rank, regret, and what a trial takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markdown_tables import markdown_table

from dre_jax.experiment import Times
from dre_jax.methods import METHODS
from dre_jax.report import Comparison
from dre_jax.report.statistics import holm, signed_rank


def main_table(comparison: Comparison, times: Mapping[str, Times], at: Sequence[int]) -> str:
    """Every method, the best average rank at the end first."""
    rank, regret = comparison.average_rank("spaces"), comparison.average_regret("spaces")
    error = comparison.standard_error()
    heads = ["method", "transfer", *(f"rank at {t}" for t in at), *(f"regret at {t}" for t in at), "ms a suggestion"]
    rows = []
    for i in np.argsort(rank[:, at[-1]], kind="stable"):
        name = comparison.methods[i]
        rows.append(
            [
                f"`{name}`",
                "yes" if METHODS[name].transfer else "no",
                *(f"{rank[i, t]:.2f}" for t in at),
                *(f"{regret[i, t]:.4f} ± {error[i, t]:.4f}" for t in at),
                f"{1e3 * times[name].warm:.0f}",
            ]
        )
    return markdown_table(heads, rows)


def against(comparison: Comparison, name: str, at: Sequence[int]) -> str:
    """Wilcoxon's signed-rank test of every method against one, over tasks, Holm-adjusted; + where the one is better."""
    regret = comparison.by_task(comparison.rounded())
    own = comparison.methods.index(name)
    others = [i for i in range(len(comparison.methods)) if i != own]
    cells: list[list[str]] = [[f"`{comparison.methods[i]}`"] for i in others]
    for t in at:
        p = holm([signed_rank(regret[i, :, t], regret[own, :, t]) for i in others])
        for row, i, value in zip(cells, others, p, strict=True):
            difference = float((regret[i, :, t] - regret[own, :, t]).mean())
            row.append(f"{difference:+.4f} (p {value:.3f})")
    return markdown_table(["method", *(f"regret less {name}'s at {t}" for t in at)], cells)
