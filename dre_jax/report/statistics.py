"""Which differences between methods are more than chance: Friedman's test, then Wilcoxon's between all pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from dre_jax.errors import ConfigError
from dre_jax.report.comparison import DECIMALS, Comparison

__all__ = ["Significance", "Unit", "holm", "signed_rank", "significance"]

Unit = Literal["tasks", "runs"]
# Up to so many observations every pattern of signs is counted.
_ALL_SIGNS = 13


class Significance(NamedTuple):
    """Tests of the regret after some trials."""

    unit: str
    """What counts as one observation: "tasks" (mean over designs) or "runs" (pooled, as HPO-B does)."""
    n: int
    """Observations."""
    trial: int
    methods: tuple[str, ...]
    average_rank: npt.NDArray[np.float64]
    """f64[methods], over the observations."""
    friedman_statistic: float
    """NaN with fewer than three methods or two observations."""
    friedman_p: float
    """That no method differs; NaN as the statistic."""
    wilcoxon_p: npt.NDArray[np.float64]
    """f64[methods, methods], two-sided, Holm-adjusted over all pairs; 1 on the diagonal."""
    alpha: float
    cliques: tuple[tuple[str, ...], ...]
    """Largest groups of methods next to each other in rank order in which no pair differs at alpha; best first."""


def significance(comparison: Comparison, trial: int, *, unit: Unit = "tasks", alpha: float = 0.05) -> Significance:
    """Friedman's test and pairwise Wilcoxon signed-rank tests with Holm's correction, after so many trials.

    Equal regret, to 8 decimals, counts half for either side, as Demšar (JMLR 2006) has it. So methods that never differ
    have p = 1. Runs of one task are not independent: pooled, p-values are smaller than they should be.

    Raises:
      ConfigError: for another unit, or a trial that there is not.
    """
    if unit not in ("tasks", "runs"):
        raise ConfigError(f"the unit must be tasks or runs, but got {unit!r}")
    if not 0 <= trial <= comparison.n_trials:
        raise ConfigError(f"the trial must lie between 0 and {comparison.n_trials}, but got {trial}")
    at = comparison.regret[:, :, trial : trial + 1]
    values = np.round((comparison.by_task(at) if unit == "tasks" else at)[:, :, 0], DECIMALS)
    rank = stats.rankdata(values, axis=0).mean(axis=1)
    p = _pairwise(values)
    statistic, friedman_p = _friedman(values)
    return Significance(
        unit=unit,
        n=values.shape[1],
        trial=trial,
        methods=comparison.methods,
        average_rank=rank,
        friedman_statistic=statistic,
        friedman_p=friedman_p,
        wilcoxon_p=p,
        alpha=alpha,
        cliques=_cliques(comparison.methods, rank, p > alpha),
    )


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """P-values adjusted for their number by Holm's step-down procedure (1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def _friedman(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Statistic and p-value of f64[methods, observations]."""
    methods, observations = values.shape
    if methods < 3 or observations < 2:
        return float("nan"), float("nan")
    if (values == values[0]).all():  # no ranks to tell apart: the statistic is 0/0
        return 0.0, 1.0
    found = stats.friedmanchisquare(*values)
    return float(found.statistic), float(found.pvalue)


def _pairwise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    pairs = list(combinations(range(len(values)), 2))
    adjusted = holm([signed_rank(values[a], values[b]) for a, b in pairs])
    p = np.ones((len(values), len(values)))
    for (a, b), value in zip(pairs, adjusted, strict=True):
        p[a, b] = p[b, a] = value
    return p


def signed_rank(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Two-sided p-value of Wilcoxon's test of pairs; zeros keep their rank and count half for either side.

    >>> signed_rank(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3]))
    1.0
    """
    # In whole units of the last decimal: equal differences are then equal in floating point as well.
    differences = np.round(one * 10.0**DECIMALS) - np.round(other * 10.0**DECIMALS)
    if not differences.any():
        return 1.0
    if differences.size <= _ALL_SIGNS:
        return _by_all_signs(differences)
    return float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def _by_all_signs(differences: npt.NDArray[np.float64]) -> float:
    """The exact p-value, ties and zeros or not. SciPy goes through the same signs one by one, which takes a second."""
    rank = np.where(differences == 0, 0.0, stats.rankdata(np.abs(differences)))  # the half of a zero has no sign
    count = differences.size
    positive = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    possible = positive @ rank  # multiples of a half, so exact
    found = rank[differences > 0].sum()
    return float(min(1.0, 2 * min((possible <= found).mean(), (possible >= found).mean())))


def _cliques(
    methods: tuple[str, ...], rank: npt.NDArray[np.float64], alike: npt.NDArray[np.bool_]
) -> tuple[tuple[str, ...], ...]:
    """Maximal stretches of the rank order in which all pairs are alike; a method that is alike to none is none."""
    order = np.argsort(rank, kind="stable")
    found: list[tuple[str, ...]] = []
    reach = 0
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and alike[np.ix_(order[first : last + 2], order[first : last + 2])].all():
            last += 1
        if last > max(first, reach):
            found.append(tuple(methods[i] for i in order[first : last + 1]))
        reach = max(reach, last)
    return tuple(found)
