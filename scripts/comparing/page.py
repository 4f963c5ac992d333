"""The comparison as one document."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from markdown_tables import markdown_table, regret_cells

from dre_jax.hpob.jobs import Cost, Job
from dre_jax.hpob.timing import HISTORY, REPEATS, SPACE, Times
from dre_jax.methods import METHODS
from dre_jax.report import Comparison

_TOP = """\
Methods of the papers on the same loop, tasks and initial designs; made by `scripts/compare_methods.py`, do not
edit by hand. Rank (among the methods of this table; 1 is the best) and regret are means over search spaces, so that
none counts for more than another; ± is the standard error of that mean, tasks drawn within search spaces. Sorted by
the last rank. A suggestion is timed once it is warm.
"""


def page(
    title: str,
    command: str,
    comparison: Comparison,
    costs: Mapping[str, Cost],
    times: Mapping[str, Times],
    todo: Sequence[Job],
    at: tuple[int, ...],
) -> str:
    """All sections."""
    tasks = len(set(comparison.tasks))
    facts = (
        f"`{command}`: {len(comparison.runs)} runs a method, {tasks} {todo[0].split} tasks of "
        f"{len(comparison.spaces)} search spaces ({', '.join(comparison.spaces)}), "
        f"initial designs of each task: {len({run[2] for run in comparison.runs})}."
    )
    parts = [f"# {title}", _TOP.rstrip(), textwrap.fill(facts, 120), main_table(comparison, times, at)]
    failed = {name: cost.failed for name, cost in costs.items() if cost.failed}
    if failed:
        parts += ["Runs that ended with an error, and are left out for all methods:"]
        parts += ["\n".join(f"- `{name}`: {len(lines)}, the first: {lines[0]}" for name, lines in failed.items())]
    parts += ["## What it took", textwrap.fill(_HOW_TIMED, 120), _times(costs, times)]
    return "\n\n".join(parts) + "\n"


def main_table(comparison: Comparison, times: Mapping[str, Times], at: Sequence[int]) -> str:
    heads = ["method", "transfer", *(f"rank at {t}" for t in at), *(f"regret at {t}" for t in at), "ms a suggestion"]
    ranks, regrets = comparison.average_rank("spaces"), list(regret_cells(comparison, at, "spaces"))
    rows = []
    for i in np.argsort(ranks[:, at[-1]], kind="stable"):
        name, rank = comparison.methods[i], [f"{ranks[i, t]:.2f}" for t in at]
        transfer = "yes" if name in METHODS and METHODS[name].transfer else "no"  # a class of one's own sees no past
        rows.append([f"`{name}`", transfer, *rank, *regrets[i], f"{1e3 * times[name].warm:.0f}"])
    return markdown_table(heads, rows)


_HOW_TIMED = (
    f"Timed alone on the machine: learning from the past tasks of the bundled space `{SPACE}`; the first suggestion "
    f"after {HISTORY} trials on its first test task, which compiles; and the median of {REPEATS} more. All runs of the "
    "table, with what was compiled for them, took the core minutes beside it, among other work, where they were made "
    "in one go."
)


def _times(costs: Mapping[str, Cost], times: Mapping[str, Times]) -> str:
    heads = ["method", "fit, s", "first suggestion, s", "suggestion, ms", "all runs, core minutes", "failed runs"]
    rows = []
    for name, cost in costs.items():
        fit, first, warm = times[name]
        seconds = [f"{fit:.1f}" if fit else "", f"{first:.1f}", f"{1e3 * warm:.1f}"]
        minutes = "" if cost.seconds is None else f"{cost.seconds / 60:.1f}"
        rows.append([f"`{name}`", *seconds, minutes, str(len(cost.failed))])
    return markdown_table(heads, rows)
