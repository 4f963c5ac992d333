"""A study's table: regret with its spread over meta-trainings, rank, and the test against the first variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table

from ablations.studies import Study
from dre_jax.report import Comparison
from dre_jax.report.statistics import holm, signed_rank

AT = (5, 10, 25, 50, 100)


class Line(NamedTuple):
    """A variant, at the trials shown."""

    name: str
    regret: np.ndarray
    """Mean over search spaces."""
    spread: np.ndarray
    """Standard deviation of that mean over meta-training seeds."""
    rank: np.ndarray
    """Among the study's variants, mean over search spaces."""
    p: np.ndarray | None
    """Of the signed-rank test over tasks against the first variant, Holm-adjusted over all; None for the first."""


def seed_of(run: tuple[str, str, str]) -> str:
    return run[2].partition(":")[0]


def shown(comparison: Comparison) -> list[int]:
    return [t for t in AT if t <= comparison.n_trials] or [comparison.n_trials]


def lines(comparison: Comparison) -> list[Line]:
    """A line a variant, from runs whose seeds are named ``<meta-training seed>:<design>``."""
    at, seeds = shown(comparison), np.array([seed_of(run) for run in comparison.runs])
    by_seed = []
    for seed in np.unique(seeds):
        kept = np.flatnonzero(seeds == seed)
        runs = tuple(comparison.runs[i] for i in kept)
        part = comparison._replace(runs=runs, regret=comparison.regret[:, kept])
        by_seed.append(part.average_regret("spaces")[:, at])
    spread = np.std(by_seed, axis=0, ddof=1) if len(by_seed) > 1 else np.full(by_seed[0].shape, np.nan)
    regret, rank = comparison.average_regret("spaces")[:, at], comparison.average_rank("spaces")[:, at]
    first, *others = comparison.by_task(comparison.regret)[:, :, at]
    p = [holm([signed_rank(other[:, t], first[:, t]) for other in others]) for t in range(len(at))]
    tests = [None, *np.transpose(p)]
    return [Line(*line) for line in zip(comparison.methods, regret, spread, rank, tests, strict=True)]


def facts(comparison: Comparison, kind: str) -> str:
    """A sentence on what was run, on tasks of a kind."""
    n_seeds = len({seed_of(run) for run in comparison.runs})
    return (
        f"{len(comparison.runs)} runs a variant: {len(set(comparison.tasks))} {kind} tasks of "
        f"{len(comparison.spaces)} search spaces, {n_seeds} meta-trainings, "
        f"{len({run[2] for run in comparison.runs}) // n_seeds} initial designs."
    )


def markdown(name: str, study: Study, comparison: Comparison) -> str:
    """Returns the study as a section: question, what the papers say, and table."""
    heads = ["variant", *(f"{what} at {t}" for what in ("regret", "rank", "p") for t in shown(comparison))]
    rows = [_cells(line) for line in lines(comparison)]
    papers = f"`{name}`. The papers: {study.papers}."
    return "\n\n".join([f"## {study.question}", papers, facts(comparison, study.split), markdown_table(heads, rows)])


def _cells(line: Line) -> list[str]:
    spread = ["" if np.isnan(s) else f" ± {s:.4f}" for s in line.spread]
    regret = [f"{mean:.4f}{error}" for mean, error in zip(line.regret, spread, strict=True)]
    p = [""] * len(regret) if line.p is None else [f"{value:.3f}" for value in line.p]
    return [line.name, *regret, *(f"{rank:.2f}" for rank in line.rank), *p]


def page(title: str, sections: Mapping[str, str]) -> str:
    top = f"""# {title}

What each choice is worth on tasks that nothing was trained on; made by `scripts/ablate.py`. Regret and rank are means
over search spaces, so that none counts for more than another; ± is the standard deviation of that mean over
meta-trainings with different seeds, "the spread" below; rank is among the variants of one table. p is from Wilcoxon's
signed-rank test over tasks (means over meta-trainings and designs) against the first variant, Holm-adjusted over the
table's variants.
"""
    return "\n\n".join([top.rstrip(), *sections.values()]) + "\n"
