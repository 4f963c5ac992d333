"""A study's tables: every variant beside the first, task by task."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table

from ablations.studies import Study
from dre_jax.report import Comparison
from dre_jax.report.comparison import Over
from dre_jax.report.statistics import holm, signed_rank

AT = (5, 10, 25, 50, 100)
SEEN = 2.8
"""Standard errors of a paired difference that a two-sided test at 5 % sees with a power of 80 %: 1.96 + 0.84."""

_AVERAGES: Mapping[Over, str] = {"runs": "Mean over tasks", "spaces": "Mean over search spaces"}


class Beside(NamedTuple):
    """A variant beside the first, by quantity."""

    name: str
    mean: np.ndarray
    difference: np.ndarray
    """Of the means: this one's less the first's."""
    error: np.ndarray
    """Standard error of that difference, over tasks."""
    p: np.ndarray
    """Of the signed-rank test over tasks, Holm-adjusted over the variants; NaN for the first."""


def by_task(comparison: Comparison, what: str) -> tuple[list[str], Comparison]:
    """Quantities of regret or rank, and f64[variants, tasks, quantities] of them, in the place of regret at trials.

    A task's number is the mean over its meta-trainings and designs. The area under the curve of regret is the mean
    over trials 1 to T.
    """
    at = [t for t in AT if t <= comparison.n_trials] or [comparison.n_trials]
    names = [f"{what} at {t}" for t in at]
    values = (comparison.ranks() if what == "rank" else comparison.regret)[:, :, at]
    if what == "regret":
        names.append("area")
        values = np.concatenate([values, comparison.regret[:, :, 1:].mean(axis=2, keepdims=True)], axis=2)
    tasks = tuple((*task, "") for task in dict.fromkeys(comparison.tasks))
    return names, comparison._replace(runs=tasks, regret=comparison.by_task(values))


def beside(tasks: Comparison, over: Over) -> Iterator[Beside]:
    """Every variant of `by_task`, beside the first."""
    first, *others = tasks.regret
    less = tasks.relative_to(tasks.methods[0])
    n = first.shape[1]
    p = [holm([signed_rank(other[:, i], first[:, i]) for other in others]) for i in range(n)]
    tests = [np.full(n, np.nan), *np.transpose(p)]
    parts = (tasks.average_regret(over), less.average_regret(over), less.standard_error(over), tests)
    yield from map(Beside, tasks.methods, *parts)


def markdown(name: str, study: Study, comparison: Comparison, kind: str) -> str:
    """The study as a section: regret and rank, over all tasks of a kind and over search spaces.

    The seeds of the runs are named ``<meta-training seed>:<design>``.
    """
    n_runs, seeds = len(comparison.runs), {run[2] for run in comparison.runs}
    n_trainings = len({seed.partition(":")[0] for seed in seeds})
    tasks = f"{len(set(comparison.tasks))} {kind} tasks of {len(comparison.spaces)} search spaces"
    repeats = f"{n_trainings} meta-trainings, {len(seeds) // n_trainings} initial designs"
    parts = [f"## {study.question}", f"`{name}`. {n_runs} runs a variant: {tasks}, {repeats}."]
    for over, title in _AVERAGES.items():
        parts.append(f"### {title}")
        parts += [_table(*by_task(comparison, what), over) for what in ("regret", "rank")]
    return "\n\n".join(parts)


def _table(names: list[str], tasks: Comparison, over: Over) -> str:
    heads = ["variant", *(head for name in names for head in (name, "less the first's"))]
    return markdown_table(heads, [_cells(line, names) for line in beside(tasks, over)])


def _cells(line: Beside, names: list[str]) -> list[str]:
    cells = [line.name]
    for name, mean, difference, error, p in zip(names, *line[1:], strict=True):
        digits = 2 if name.startswith("rank") else 4
        seen = f"{difference:+.{digits}f} ± {error:.{digits}f} (p {p:.3f}; {SEEN * error:.{digits}f})"
        cells += [f"{mean:.{digits}f}", "" if np.isnan(p) else seen]
    return cells


def page(title: str, sections: Mapping[str, str], folds: int | None = None) -> str:
    """All sections, below what their numbers are; folds are those of a cross-validation."""
    made = "Made by `scripts/ablate.py`."
    if folds is not None:
        made = f"""Cross-validation over tasks, made by `scripts/ablate.py --folds {folds}`: training and validation
tasks together are dealt out to {folds} folds, and methods that learned from the others optimise the tasks of each."""
    top = f"""{made} "area" is the area under the curve of regret: its mean over trials 1 to the last. Differences to
the table's first variant are paired by task, a task's number being the mean over its meta-trainings and designs; ± is
the standard error over tasks (in means over search spaces: over the tasks within each). In brackets stand p and the
smallest difference that this comparison can see. p is of the signed-rank test over all tasks, exact where at most 200
differ, Holm-adjusted over the variants. The smallest difference is {SEEN} standard errors: a true difference of that
size is found by a two-sided test at 5 % in 80 % of such comparisons. Choose by nothing smaller."""
    return "\n\n".join([f"# {title}", textwrap.fill(" ".join(top.split()), 120), *sections.values()]) + "\n"
