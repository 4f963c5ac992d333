"""The paper's statements about its figures, as checks on the traces; and reference numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.report import Comparison
from dre_jax.report.statistics import Significance, Significances

TOLERANCE = 1e-4


class Verdict(NamedTuple):
    """The outcome of a check."""

    agrees: bool
    found: str


class Claim(NamedTuple):
    """A statement of the paper in our words, the methods that it is about, and how it is checked."""

    text: str
    methods: tuple[str, ...]
    check: Callable[[Comparison, Significances], Verdict]


class Number(NamedTuple):
    """An average, pooled over runs, that the traces must give to four decimals."""

    quantity: str
    method: str
    trial: int
    value: float

    def found(self, comparison: Comparison) -> float:
        averages = comparison.average_rank() if self.quantity == "rank" else comparison.average_regret()
        return float(averages[comparison.methods.index(self.method), self.trial])

    def agrees(self, comparison: Comparison) -> bool:
        return abs(self.found(comparison) - self.value) <= TOLERANCE


def leads(text: str, method: str, until: int | None = None) -> Claim:
    """A method has the best average rank, as the mean over all trials or those up to a last one."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        rank = comparison.average_rank()[:, 1 : None if until is None else until + 1]
        own = comparison.methods.index(method)
        ahead = rank[own] <= rank.min(axis=0)
        behind = 1 + np.flatnonzero(~ahead)
        found = f"best after {ahead.sum()} of {ahead.size} trials"
        if behind.size:
            found += f", not after {_few(behind)}"
        return Verdict(
            int(rank.mean(axis=1).argmin()) == own, f"{found}; best mean over them: {_best(comparison, rank)}"
        )

    return Claim(text, (method,), check)


def _best(comparison: Comparison, rank: npt.NDArray[np.float64]) -> str:
    mean = rank.mean(axis=1)
    return f"{comparison.methods[int(mean.argmin())]}, {mean.min():.3f}"


def better(text: str, method: str, other: str) -> Claim:
    """A method has the better rank than another, as the mean over all trials."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        mean = dict(zip(comparison.methods, comparison.average_rank()[:, 1:].mean(axis=1), strict=True))
        found = f"mean rank over all trials {mean[method]:.3f} against {mean[other]:.3f}"
        return Verdict(bool(mean[method] < mean[other]), found)

    return Claim(text, (method, other), check)


def none_differ(text: str, methods: tuple[str, ...]) -> Claim:
    """No two methods differ significantly over tasks."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        found = [
            f"{a} and {b} after {trial}" for trial, test in sorted(tests["tasks"].items()) for a, b in _differing(test)
        ]
        return Verdict(not found, "; ".join(found) + " differ" if found else "no pair does")

    return Claim(text, methods, check)


def differs(text: str, method: str, others: tuple[str, ...]) -> Claim:
    """A method differs significantly from others, over tasks and at every trial that is tested."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        missed = {unit: _alike(method, others, by_trial) for unit, by_trial in tests.items()}
        always = "it does at every trial tested"
        found = "; ".join(f"over {unit}: {', '.join(alike) or always}" for unit, alike in missed.items())
        return Verdict(not missed["tasks"], found)

    return Claim(text, (method, *others), check)


def _alike(method: str, others: tuple[str, ...], by_trial: Mapping[int, Significance]) -> list[str]:
    missed = []
    for trial, test in sorted(by_trial.items()):
        pairs = {frozenset(pair) for pair in _differing(test)}
        alike = [other for other in others if frozenset((method, other)) not in pairs]
        missed += [f"not from {' and '.join(alike)} after {trial}"] if alike else []
    return missed


def _differing(test: Significance) -> list[tuple[str, str]]:
    pairs = combinations(range(len(test.methods)), 2)
    return [(test.methods[i], test.methods[j]) for i, j in pairs if test.wilcoxon_p[i, j] <= test.alpha]


def _few(trials: npt.NDArray[np.int64]) -> str:
    if trials.size > 1 and (np.diff(trials) == 1).all():
        return f"{trials[0]} to {trials[-1]}"
    shown = ", ".join(map(str, trials[:6]))
    return shown if trials.size <= 6 else f"{shown} and {trials.size - 6} more"
