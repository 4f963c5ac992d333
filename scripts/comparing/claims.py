"""What the literature leads one to expect of the table, and whether it holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from markdown_tables import markdown_table

from dre_jax.methods import METHODS
from dre_jax.methods.ensembles import LOSSES
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

MENDED = "committee"
"""What the library does about the tasks on which DRE loses."""

_ON_VALIDATION = "on the validation tasks, where fine-tuning is shorter, it does at 10 and 25 trials"
WHY: dict[tuple[str, str], str] = {
    ("listwise", "pointwise"): f"{_ON_VALIDATION} if it is weighted (docs/ablations.md).",
    ("pairwise", "pointwise"): f"{_ON_VALIDATION} (docs/ablations.md).",
}
"""What was found where the first of a pair does not beat the second."""


class Finding(NamedTuple):
    """One expectation."""

    expected: str
    holds: bool
    by_chance: tuple[int, ...]
    """Trials at which it holds, but as much could be chance: p is 0.05 or more."""
    turned: tuple[int, ...]
    """Trials at which the other one is ahead beyond chance."""
    numbers: str
    why: str | None
    """What was found out, where it does not hold."""


def findings(comparison: Comparison, at: tuple[int, ...]) -> Iterator[Finding]:
    """All expectations for which the methods and the trials are there."""
    late, early = [t for t in at if t >= 10], [t for t in at if t <= 10]
    to_random = [(name, "random") for name in comparison.methods if name != "random"]
    for pairs, trials in ((to_random, late), (_PAIRS, early), (_LOSSES, at)):
        for pair in pairs:
            if trials and set(pair) <= set(comparison.methods):
                yield _better(comparison, *pair, trials)


def _better(comparison: Comparison, one: str, other: str, at: Sequence[int]) -> Finding:
    regret = comparison.by_task(comparison.rounded())
    first, second = (regret[comparison.methods.index(name)] for name in (one, other))
    p = {t: signed_rank(first[:, t], second[:, t]) for t in at}
    parts = [f"{first[:, t].mean():.4f} against {second[:, t].mean():.4f} at {t} (p {p[t]:.3f})" for t in at]
    holds = all(first[:, t].mean() < second[:, t].mean() for t in at)
    by_chance = tuple(t for t in at if holds and p[t] >= 0.05)
    turned = tuple(t for t in at if first[:, t].mean() > second[:, t].mean() and p[t] < 0.05)
    why = None if holds and not by_chance else WHY.get((one, other))
    return Finding(f"`{one}` beats `{other}`", holds, by_chance, turned, "; ".join(parts), why)


def claims_table(found: list[Finding]) -> str:
    """Expectations, whether they hold, and by how much."""
    rows = [[f.expected, verdict(f), f.numbers] for f in found]
    table = markdown_table(["expected", "holds", "mean regret over tasks"], rows)
    words = [textwrap.fill(f"- {f.expected}: {f.why}", 120, subsequent_indent="  ") for f in found if f.why]
    return "\n\n".join([table, *(["Where it does not, or not surely:", "\n".join(words)] if words else [])])


def verdict(found: Finding) -> str:
    """In a word.

    Example:
      >>> verdict(Finding("a", True, (10, 25), (), "", None))
      'perhaps: by chance at 10, 25'
      >>> verdict(Finding("a", False, (), (10,), "", None))
      '**no**, turned at 10'
    """
    if found.turned:
        return f"**no**, turned at {', '.join(map(str, found.turned))}"
    if not found.holds:
        return "no, within chance"
    return f"perhaps: by chance at {', '.join(map(str, found.by_chance))}" if found.by_chance else "yes"


class Loss(NamedTuple):
    """A task on which another method is ahead."""

    task: tuple[str, str]
    own: float
    winner: str
    best: float
    without_transfer: float
    """The best of the methods without transfer: where it is below `own`, past tasks misled."""
    mended: float | None
    """What `MENDED` has there, if it is among the methods."""


def losses(comparison: Comparison, name: str, trial: int, most: int = 12) -> list[Loss]:
    """The tasks on which a method is furthest behind the best of the others, that is not a variant of it."""
    regret = comparison.by_task(comparison.rounded())[:, :, trial]
    others = [i for i, m in enumerate(comparison.methods) if not m.startswith("dre") and m != MENDED]
    plain = [i for i in others if not METHODS[comparison.methods[i]].transfer]
    own = regret[comparison.methods.index(name)]
    mended = regret[comparison.methods.index(MENDED)] if MENDED in comparison.methods else None
    found = []
    for j, task in enumerate(dict.fromkeys(comparison.tasks) if others else ()):
        best = others[int(np.argmin(regret[others, j]))]
        if regret[best, j] < own[j]:
            plainest = min((regret[i, j] for i in plain), default=np.inf)
            after = None if mended is None else mended[j]
            found.append(Loss(task, own[j], comparison.methods[best], regret[best, j], plainest, after))
    return sorted(found, key=lambda loss: loss.best - loss.own)[:most]
