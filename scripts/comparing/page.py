"""The comparison as one document."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from comparing.claims import claims_table, findings, losses
from comparing.jobs import Cost, Job, folder
from comparing.tables import against, main_table, markdown_table
from dre_jax.benchmark import Comparison
from dre_jax.data import SearchSpace, load_space

_TOP = """\
Every method of the papers on the same loop, tasks and initial designs; made by `scripts/compare_methods.py`, do not
edit by hand. Rank (among the methods of this table; 1 is the best) and regret are means over search spaces, so that
none counts for more than another; ± is the standard error over tasks. *s a trial* is the time of one trial on one
core: fitting, and choosing among the table's rows; compiling and learning from past tasks stand apart.
"""


def page(
    title: str,
    command: str,
    comparison: Comparison,
    costs: Mapping[str, Cost],
    todo: Sequence[Job],
    at: tuple[int, ...],
) -> str:
    """All sections."""
    tasks = len(set(comparison.tasks))
    facts = (
        f"`{command}`: {len(comparison.runs)} runs a method, {tasks} {todo[0].split} tasks of "
        f"{len(comparison.spaces)} search spaces ({', '.join(comparison.spaces)}), "
        f"{len({run[2] for run in comparison.runs})} initial designs of each task."
    )
    parts = [f"# {title}", _TOP.rstrip(), textwrap.fill(facts, 120), main_table(comparison, costs, at)]
    failed = {name: cost.failed for name, cost in costs.items() if cost.failed}
    if failed:
        parts += ["Runs that ended with an error, and are left out for all methods:"]
        parts += ["\n".join(f"- `{name}`: {len(lines)}, the first: {lines[0]}" for name, lines in failed.items())]
    parts += ["## What the literature leads one to expect", claims_table(list(findings(comparison, at)))]
    if "dre" in comparison.methods and len(comparison.methods) > 1:
        parts += ["## Against DRE", against(comparison, "dre", at), *_losses(comparison, todo, at)]
    parts += ["## What it took", _costs(costs)]
    return "\n\n".join(parts) + "\n"


def _losses(comparison: Comparison, todo: Sequence[Job], at: tuple[int, ...]) -> list[str]:
    """Where DRE is behind, trial by trial."""
    parts = ["## Where DRE loses"]
    places = {job.label(): job for job in todo}
    for t in at:
        found = losses(comparison, "dre", t)
        if not found:
            continue
        heads = ["task", "dre", "best other", "its regret", "best without transfer", "rows", "tied at the top"]
        rows = []
        for loss in found:
            n_rows, tied = _facts(places[loss.task[0]], loss.task[1])
            rows.append(
                [
                    f"{loss.task[0]} {loss.task[1]}",
                    f"{loss.own:.4f}",
                    f"`{loss.winner}`",
                    f"{loss.best:.4f}",
                    f"{loss.without_transfer:.4f}",
                    str(n_rows),
                    f"{tied:.1%}",
                ]
            )
        misled = sum(loss.without_transfer < loss.own for loss in found)
        text = (
            f"At {t} trials, the {len(found)} tasks furthest behind the best other method; on {misled} of them a "
            "method without transfer is ahead too, so that past tasks may have misled."
        )
        parts += [textwrap.fill(text, 120), markdown_table(heads, rows)]
    return parts


@cache
def _space(data: str, name: str, split: str) -> SearchSpace:
    return load_space(folder(data), name, splits=[split])


def _facts(job: Job, dataset: str) -> tuple[int, float]:
    """Rows of a task, and the share of them within a thousandth of its range of the best response."""
    y = _space(job.data, job.space, job.split).split(job.split)[dataset].y
    spread = y.max() - y.min()
    return len(y), float(np.mean(y >= y.max() - 1e-3 * spread))


def _costs(costs: Mapping[str, Cost]) -> str:
    rows = [
        [f"`{name}`", f"{cost.seconds_per_trial:.3f}", f"{cost.seconds / 60:.1f}", str(len(cost.failed))]
        for name, cost in costs.items()
    ]
    return markdown_table(["method", "s a trial", "minutes of a core in all", "failed runs"], rows)
