"""What the literature leads one to expect of the table, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from comparing.tables import markdown_table
from dre_jax.benchmark import Comparison
from dre_jax.benchmark.statistics import signed_rank
from dre_jax.methods import METHODS

_PAIRS = (
    ("rgpe", "gp"),
    ("tst", "gp"),
    ("taf", "gp"),
    ("gcp", "gp"),
    ("fsbo", "dkgp"),
    ("dklm", "dkgp"),
    ("dre-paper", "dre-ri"),
    ("dre", "gp"),
)
"""A method with transfer, and what it is without."""


class Finding(NamedTuple):
    """One expectation."""

    expected: str
    holds: bool
    numbers: str


def findings(comparison: Comparison, at: tuple[int, ...]) -> Iterator[Finding]:
    """All expectations for which the methods are there."""
    if "random" in comparison.methods:
        for name in comparison.methods:
            if name != "random":
                yield _better(comparison, name, "random", [t for t in at if t >= 10])
    for with_transfer, without in _PAIRS:
        if {with_transfer, without} <= set(comparison.methods):
            yield _better(comparison, with_transfer, without, [t for t in at if t <= 10])


def _better(comparison: Comparison, one: str, other: str, at: list[int]) -> Finding:
    regret = comparison.by_task(comparison.rounded())
    first, second = (regret[comparison.methods.index(name)] for name in (one, other))
    parts = []
    for t in at:
        p = signed_rank(first[:, t], second[:, t])
        parts.append(f"{first[:, t].mean():.4f} against {second[:, t].mean():.4f} at {t} (p {p:.3f})")
    holds = all(first[:, t].mean() < second[:, t].mean() for t in at)
    return Finding(f"`{one}` beats `{other}`", holds, "; ".join(parts))


def claims_table(found: list[Finding]) -> str:
    """Expectations, whether they hold, and by how much."""
    rows = [[f.expected, "yes" if f.holds else "**no**", f.numbers] for f in found]
    return markdown_table(["expected", "holds", "mean regret over tasks"], rows)


class Loss(NamedTuple):
    """A task on which another method is ahead."""

    task: tuple[str, str]
    own: float
    winner: str
    best: float
    without_transfer: float
    """The best of the methods without transfer: where it is below `own`, past tasks misled."""


def losses(comparison: Comparison, name: str, trial: int, most: int = 12) -> list[Loss]:
    """The tasks on which a method is furthest behind the best of the others, that is not a variant of it."""
    regret = comparison.by_task(comparison.rounded())[:, :, trial]
    others = [i for i, m in enumerate(comparison.methods) if not m.startswith("dre")]
    plain = [i for i in others if not METHODS[comparison.methods[i]].transfer]
    own = regret[comparison.methods.index(name)]
    tasks = list(dict.fromkeys(comparison.tasks))
    found = []
    for j, task in enumerate(tasks):
        best = min(others, key=lambda i, j=j: regret[i, j])
        if regret[best, j] < own[j]:
            found.append(
                Loss(task, own[j], comparison.methods[best], regret[best, j], min(regret[i, j] for i in plain))
            )
    return sorted(found, key=lambda loss: loss.best - loss.own)[:most]
