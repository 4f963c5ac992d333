"""The paper's statements about its figures, as checks on the traces; and reference numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dre_jax.report import Comparison
from dre_jax.report.statistics import Significance, Significances

TOLERANCE = 1e-4
Verdict = tuple[bool, str]
"""True if the traces agree, and a sentence on what they show."""


class Claim(NamedTuple):
    """A statement of the paper in our words, the methods that it is about, and how it is checked."""

    text: str
    methods: tuple[str, ...]
    check: Callable[[Comparison, Significances], Verdict]
    trials: int = 0
    """That it takes."""
    is_number: bool = False


def equals(
    comparison: Comparison, tests: Significances, *, quantity: str, method: str, trial: int, value: float
) -> Verdict:
    """An average over all runs has a value, to four decimals."""
    averages = comparison.average_rank() if quantity == "rank" else comparison.average_regret()
    average = float(averages[comparison.methods.index(method), trial])
    return abs(average - value) <= TOLERANCE, f"{average:.4f}"


def leads(comparison: Comparison, tests: Significances, *, methods: Sequence[str], until: int | None = None) -> Verdict:
    """The method has the best average rank, as the mean over all trials or those up to a last one."""
    rank = comparison.average_rank()[:, 1 : None if until is None else until + 1]
    own, mean = comparison.methods.index(methods[0]), rank.mean(axis=1)
    ahead = rank[own] <= rank.min(axis=0)
    text = f"best after {ahead.sum()} of {ahead.size} trials"
    if not ahead.all():
        text += f", not after {_few(1 + np.flatnonzero(~ahead))}"
    best = comparison.methods[int(mean.argmin())]
    return best == methods[0], f"{text}; best mean over them: {best}, {mean.min():.3f}"


def better(comparison: Comparison, tests: Significances, *, methods: Sequence[str]) -> Verdict:
    """The first method has the better rank than the second, as the mean over all trials."""
    mean = dict(zip(comparison.methods, comparison.average_rank()[:, 1:].mean(axis=1), strict=True))
    first, second = (mean[method] for method in methods)
    return bool(first < second), f"mean rank over all trials {first:.3f} against {second:.3f}"


def none_differ(comparison: Comparison, tests: Significances, *, methods: Sequence[str]) -> Verdict:
    """No two methods differ significantly over tasks."""
    pairs = [(*pair, trial) for trial, test in sorted(tests["tasks"].items()) for pair in _differing(test)]
    text = "; ".join(f"{a} and {b} after {trial}" for a, b, trial in pairs)
    return not pairs, f"{text} differ" if pairs else "no pair does"


def differs(comparison: Comparison, tests: Significances, *, methods: Sequence[str]) -> Verdict:
    """The first method differs significantly from the others, over tasks and at every trial that is tested."""
    first, *others = methods

    def alike(test: Significance) -> list[str]:
        apart = {frozenset(pair) for pair in _differing(test)}
        return [other for other in others if frozenset((first, other)) not in apart]

    missed = {
        unit: [
            f"not from {' and '.join(alike(test))} after {trial}"
            for trial, test in sorted(by_trial.items())
            if alike(test)
        ]
        for unit, by_trial in tests.items()
    }
    always = "it does at every trial tested"
    text = "; ".join(f"over {unit}: {', '.join(names) or always}" for unit, names in missed.items())
    return not missed["tasks"], text


CHECKS: Mapping[str, Callable[..., Verdict]] = {
    "leads": leads,
    "better": better,
    "none_differ": none_differ,
    "differs": differs,
}
"""By the name of `check` in `experiments.toml`."""


def _differing(test: Significance) -> list[tuple[str, str]]:
    pairs = combinations(range(len(test.methods)), 2)
    return [(test.methods[i], test.methods[j]) for i, j in pairs if test.wilcoxon_p[i, j] <= test.alpha]


def _few(trials: np.ndarray) -> str:
    if trials.size > 1 and (np.diff(trials) == 1).all():
        return f"{trials[0]} to {trials[-1]}"
    shown = ", ".join(map(str, trials[:6]))
    return shown if trials.size <= 6 else f"{shown} and {trials.size - 6} more"
