"""A study's table: regret with its spread over meta-trainings, rank, and the test against the first variant."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table

from ablations.study import Study
from dre_jax.report import Comparison
from dre_jax.report.statistics import holm, signed_rank

AT = (5, 10, 25, 50)


class Line(NamedTuple):
    """A variant."""

    name: str
    regret: np.ndarray
    """f64[trials shown]: mean over search spaces."""
    spread: np.ndarray
    """f64[trials shown]: standard deviation of that mean over meta-training seeds."""
    rank: np.ndarray
    """f64[trials shown]: among the study's variants, mean over search spaces."""
    p: np.ndarray | None
    """f64[trials shown]: Wilcoxon over tasks against the first variant, Holm-adjusted over all; None for the first."""


def seed_of(run: tuple[str, str, str]) -> str:
    return run[2].partition(":")[0]


def shown(comparison: Comparison) -> list[int]:
    """The trials of the columns."""
    return [t for t in AT if t <= comparison.n_trials]


def lines(comparison: Comparison) -> list[Line]:
    """A line a variant, from runs whose seeds are named ``<meta-training seed>:<design>``."""
    at = shown(comparison)
    seeds = sorted({seed_of(run) for run in comparison.runs})
    by_seed = np.stack([_of_seed(comparison, seed).average_regret("spaces")[:, at] for seed in seeds])
    spread = by_seed.std(axis=0, ddof=1) if len(seeds) > 1 else np.full(by_seed.shape[1:], np.nan)
    regret, rank = comparison.average_regret("spaces")[:, at], comparison.average_rank("spaces")[:, at]
    p = _against_first(comparison.by_task(comparison.regret)[:, :, at])
    return [
        Line(name, regret[i], spread[i], rank[i], None if i == 0 else p[i - 1])
        for i, name in enumerate(comparison.methods)
    ]


def _of_seed(comparison: Comparison, seed: str) -> Comparison:
    kept = [i for i, run in enumerate(comparison.runs) if seed_of(run) == seed]
    return comparison._replace(runs=tuple(comparison.runs[i] for i in kept), regret=comparison.regret[:, kept])


def _against_first(values: np.ndarray) -> np.ndarray:
    """f64[variants - 1, trials] from f64[variants, tasks, trials]."""
    first, others = values[0], values[1:]
    p = [[signed_rank(other[:, t], first[:, t]) for other in others] for t in range(values.shape[2])]
    return np.array([holm(row) for row in p]).T


def markdown(name: str, study: Study, comparison: Comparison) -> str:
    """The study as a section: question, what the papers say, table, and what was found."""
    n_seeds = len({seed_of(run) for run in comparison.runs})
    facts = (
        f"{len(comparison.runs)} runs a variant: {len(set(comparison.tasks))} {study.split} tasks of "
        f"{len(comparison.spaces)} search spaces, {n_seeds} meta-trainings, "
        f"{len({run[2] for run in comparison.runs}) // n_seeds} initial designs."
    )
    heads = ["variant", *(f"{what} at {t}" for what in ("regret", "rank", "p") for t in shown(comparison))]
    rows = [_cells(line) for line in lines(comparison)]
    parts = [f"## {study.question}", f"`{name}`. The papers: {study.papers}.", facts, markdown_table(heads, rows)]
    if study.found:
        parts.append(textwrap.fill(study.found, 120))
    return "\n\n".join(parts)


def _cells(line: Line) -> list[str]:
    regret = [
        f"{mean:.4f}" if np.isnan(spread) else f"{mean:.4f} ± {spread:.4f}"
        for mean, spread in zip(line.regret, line.spread, strict=True)
    ]
    p = ["" for _ in line.rank] if line.p is None else [f"{value:.3f}" for value in line.p]
    return [line.name, *regret, *(f"{rank:.2f}" for rank in line.rank), *p]


def page(title: str, sections: Mapping[str, str]) -> str:
    """All sections as one document."""
    top = f"""# {title}

What each choice is worth on tasks that nothing was trained on; made by `scripts/ablate.py`. Regret and rank are means
over search spaces, so that none counts for more than another; ± is the standard deviation of that mean over
meta-trainings with different seeds, "the spread" below; rank is among the variants of one table. p is from Wilcoxon's
signed-rank test over tasks (means over meta-trainings and designs) against the first variant, Holm-adjusted over the
table's variants.
"""
    return "\n\n".join([top.rstrip(), *sections.values()]) + "\n"
