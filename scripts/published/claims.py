"""The paper's statements about its figures, as checks on the traces; and reference numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dre_jax.report import Comparison
from dre_jax.report.statistics import Significance, Significances

TOLERANCE = 1e-4
Verdict = tuple[bool, str]
"""True if the traces agree, and a sentence on what they show."""
Check = Callable[[Comparison, Significances], Verdict]


class Claim(NamedTuple):
    """A statement of the paper in our words, the methods that it is about, and how it is checked."""

    text: str
    methods: tuple[str, ...]
    check: Check
    trials: int = 0
    """That it takes."""
    is_number: bool = False


def number(quantity: str, method: str, trial: int, value: float, everyone: Sequence[str]) -> Claim:
    """An average over the runs of everyone, pooled, that the traces must give to four decimals."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        averages = comparison.average_rank() if quantity == "rank" else comparison.average_regret()
        found = float(averages[comparison.methods.index(method), trial])
        return abs(found - value) <= TOLERANCE, f"{found:.4f}"

    text = f"Average {quantity} of {method} after {trial} trials: {value:.4f}"
    return Claim(text, tuple(everyone), check, trial, is_number=True)


def leads(text: str, method: str, until: int | None = None) -> Claim:
    """A method has the best average rank, as the mean over all trials or those up to a last one."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        rank = comparison.average_rank()[:, 1 : None if until is None else until + 1]
        own, mean = comparison.methods.index(method), rank.mean(axis=1)
        ahead = rank[own] <= rank.min(axis=0)
        found = f"best after {ahead.sum()} of {ahead.size} trials"
        if not ahead.all():
            found += f", not after {_few(1 + np.flatnonzero(~ahead))}"
        best = comparison.methods[int(mean.argmin())]
        return best == method, f"{found}; best mean over them: {best}, {mean.min():.3f}"

    return Claim(text, (method,), check)


def better(text: str, method: str, other: str) -> Claim:
    """A method has the better rank than another, as the mean over all trials."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        mean = dict(zip(comparison.methods, comparison.average_rank()[:, 1:].mean(axis=1), strict=True))
        found = f"mean rank over all trials {mean[method]:.3f} against {mean[other]:.3f}"
        return bool(mean[method] < mean[other]), found

    return Claim(text, (method, other), check)


def none_differ(text: str, methods: tuple[str, ...]) -> Claim:
    """No two methods differ significantly over tasks."""

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        pairs = [(*pair, trial) for trial, test in sorted(tests["tasks"].items()) for pair in _differing(test)]
        found = "; ".join(f"{a} and {b} after {trial}" for a, b, trial in pairs)
        return not pairs, f"{found} differ" if pairs else "no pair does"

    return Claim(text, methods, check)


def differs(text: str, method: str, others: tuple[str, ...]) -> Claim:
    """A method differs significantly from others, over tasks and at every trial that is tested."""

    def alike(test: Significance) -> list[str]:
        apart = {frozenset(pair) for pair in _differing(test)}
        return [other for other in others if frozenset((method, other)) not in apart]

    def check(comparison: Comparison, tests: Significances) -> Verdict:
        missed = {
            unit: [
                f"not from {' and '.join(alike(test))} after {trial}"
                for trial, test in sorted(by_trial.items())
                if alike(test)
            ]
            for unit, by_trial in tests.items()
        }
        always = "it does at every trial tested"
        found = "; ".join(f"over {unit}: {', '.join(names) or always}" for unit, names in missed.items())
        return not missed["tasks"], found

    return Claim(text, (method, *others), check)


def _differing(test: Significance) -> list[tuple[str, str]]:
    pairs = combinations(range(len(test.methods)), 2)
    return [(test.methods[i], test.methods[j]) for i, j in pairs if test.wilcoxon_p[i, j] <= test.alpha]


def _few(trials: np.ndarray) -> str:
    if trials.size > 1 and (np.diff(trials) == 1).all():
        return f"{trials[0]} to {trials[-1]}"
    shown = ", ".join(map(str, trials[:6]))
    return shown if trials.size <= 6 else f"{shown} and {trials.size - 6} more"
