"""Expectations from the literature about the table, and whether they hold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table

from dre_jax.methods.dre.variants import LOSSES
from dre_jax.report import Comparison
from dre_jax.report.statistics import signed_rank

_PAIRS = (
    ("rgpe", "gp"),
    ("tst", "gp"),
    ("taf", "gp"),
    ("gcp", "gp"),
    ("fsbo", "dkgp"),
    ("dklm", "dkgp"),
    ("dre-paper", "dre-ri"),
    ("dre", "gp"),
    ("dre-gp", "gp"),
    ("committee", "gp"),
    ("hedged-prior", "gp"),
    ("listwise-weighted", "dre-ri"),
    *((name, f"{name}-ri") for name in LOSSES),
)
"""A method with transfer, and what it is without."""

_LOSSES = (
    ("listwise-weighted", "listwise"),
    ("listwise", "pairwise"),
    ("listwise", "pointwise"),
    ("pairwise", "pointwise"),
    ("pointwise", "regression"),
)
"""The order of the losses (the paper, hypothesis 3)."""

_ON_VALIDATION = "on the validation tasks, where fine-tuning is shorter, it does at 10 and 25 trials"
WHY: dict[tuple[str, str], str] = {
    ("listwise", "pointwise"): f"{_ON_VALIDATION} if it is weighted (docs/results/ablations.md).",
    ("pairwise", "pointwise"): f"{_ON_VALIDATION} (docs/results/ablations.md).",
}
"""Findings where the first of a pair does not beat the second."""


class Finding(NamedTuple):
    expected: str
    verdict: str
    """Holds where the first one's mean is lower at all trials, and is not by chance where p is below 0.05 as well."""
    numbers: str
    why: str | None
    """The finding, where it does not hold or not surely."""


def findings(comparison: Comparison, at: tuple[int, ...]) -> Iterator[Finding]:
    """All expectations for which the methods and the trials are there."""
    late, early = [t for t in at if t >= 10], [t for t in at if t <= 10]
    to_random = [(name, "random") for name in comparison.methods if name != "random"]
    for pairs, trials in ((to_random, late), (_PAIRS, early), (_LOSSES, at)):
        for pair in pairs:
            if trials and set(pair) <= set(comparison.methods):
                yield _better(comparison, *pair, trials)


def _better(comparison: Comparison, one: str, other: str, at: Sequence[int]) -> Finding:
    regret = comparison.by_task(comparison.rounded())[:, :, list(at)]
    first, second = (regret[comparison.methods.index(name)] for name in (one, other))
    p = np.array([signed_rank(*pair) for pair in zip(first.T, second.T, strict=True)])
    ahead, behind = first.mean(axis=0), second.mean(axis=0)
    parts = zip(ahead, behind, at, p, strict=True)
    verdict = _verdict(ahead < behind, ahead > behind, p < 0.05, np.array(at))
    return Finding(
        f"`{one}` beats `{other}`",
        verdict,
        "; ".join(f"{a:.4f} against {b:.4f} at {t} (p {value:.3f})" for a, b, t, value in parts),
        None if verdict == "yes" else WHY.get((one, other)),
    )


def _verdict(ahead: np.ndarray, behind: np.ndarray, sure: np.ndarray, at: np.ndarray) -> str:
    if (behind & sure).any():
        return f"**no**, turned at {', '.join(map(str, at[behind & sure]))}"
    if not ahead.all():
        return "no, within chance"
    return "yes" if sure.all() else f"perhaps: by chance at {', '.join(map(str, at[~sure]))}"


def claims_table(found: list[Finding]) -> str:
    table = markdown_table(["expected", "holds", "mean regret over tasks"], [f[:3] for f in found])
    words = [textwrap.fill(f"- {f.expected}: {f.why}", 120, subsequent_indent="  ") for f in found if f.why]
    return "\n\n".join([table, *(["Where it does not, or not surely:", "\n".join(words)] if words else [])])
