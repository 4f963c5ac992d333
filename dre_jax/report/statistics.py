"""Significance of the differences between methods: Friedman's test, then Wilcoxon's between all pairs.

Both tests are conditional on the observed ties. Late in a search most tasks are tied, as most methods have found the
optimum. A test whose variance includes the tied tasks then has wrong p-values.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from scipy import stats

from dre_jax.errors import ConfigError
from dre_jax.report.comparison import DECIMALS, Comparison

Unit = Literal["tasks", "runs"]
# The time of the exact test grows with the cube, to 2 ms here. Beyond, the normal approximation differs by less than 1
# % of p above 0.01. It makes smaller p-values larger, by 7 % at 0.001 and 25 % at 3e-5.
_MOST_EXACT = 200


class Significance(NamedTuple):
    """Tests of the regret after some trials."""

    unit: str
    """One observation: "tasks" (mean over designs) or "runs" (pooled, as HPO-B does)."""
    n: int
    """Number of observations."""
    trial: int
    """Number of trials after which regret is tested."""
    methods: tuple[str, ...]
    """Methods in the order of the comparison."""
    average_rank: npt.NDArray[np.float64]
    """f64[methods], average rank over the observations."""
    friedman_statistic: float
    """Friedman's statistic; NaN with fewer than three methods or two observations."""
    friedman_p: float
    """P-value of the hypothesis that no method differs; NaN like the statistic."""
    wilcoxon_p: npt.NDArray[np.float64]
    """f64[methods, methods], two-sided, Holm-adjusted over all pairs; 1 on the diagonal."""
    alpha: float
    """Level of significance."""
    cliques: tuple[tuple[str, ...], ...]
    """Largest groups of methods next to each other in rank order in which no pair differs at alpha; best first."""


Significances = Mapping[str, Mapping[int, Significance]]
"""By unit, then by trial."""


def significance(comparison: Comparison, trial: int, *, unit: Unit = "tasks", alpha: float = 0.05) -> Significance:
    """Friedman's test and pairwise Wilcoxon signed-rank tests with Holm's correction, after some number of trials.

    Regret is compared to 8 decimals. Two methods differ where p <= alpha; methods that never differ have p = 1. See
    `signed_rank` for zeros and ties. Friedman's statistic is corrected for ties, so a task on which all methods are
    equal has no influence on it. Runs of one task are not independent, so p-values of pooled runs are too small.

    Args:
      comparison: the methods on their common runs.
      trial: number of trials after which regret is tested.
      unit: "tasks" or "runs".
      alpha: level of significance.

    Raises:
      ConfigError: for another unit, or a trial that does not exist.

    Example:
      >>> from dre_jax.data import Results, add_trace
      >>> from dre_jax.report import compare
      >>> first, second = Results(), Results()
      >>> for i in range(6):
      ...     first = add_trace(first, "svm", f"task {i}", "test0", [0.5, 0.9])
      ...     second = add_trace(second, "svm", f"task {i}", "test0", [0.5, 0.7])
      >>> float(significance(compare({"first": first, "second": second}), 1).wilcoxon_p[0, 1])
      0.03125
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


def significances(comparison: Comparison, at: Iterable[int]) -> Significances:
    """The tests after several numbers of trials, over tasks and over runs."""
    trials = tuple(at)
    return {unit: {t: significance(comparison, t, unit=unit) for t in trials} for unit in get_args(Unit)}


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """P-values adjusted for their number by Holm's step-down procedure (1979).

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, np.float64)
    order = np.argsort(p, kind="stable")
    step_down_p = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted_p = np.empty_like(p)
    adjusted_p[order] = np.minimum(step_down_p, 1.0)
    return adjusted_p


def _friedman(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Statistic and p-value of f64[methods, observations]."""
    methods, observations = values.shape
    if methods < 3 or observations < 2:
        return float("nan"), float("nan")
    if (values == values[0]).all():  # all ranks are equal: the statistic is 0/0
        return 0.0, 1.0
    result = stats.friedmanchisquare(*values)
    return float(result.statistic), float(result.pvalue)


def _pairwise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    p = np.ones((len(values), len(values)))
    upper = np.triu_indices(len(values), 1)
    p[upper] = p.T[upper] = holm([signed_rank(values[a], values[b]) for a, b in zip(*upper, strict=True)])
    return p


def signed_rank(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test on f64[n] pairs, equal to 8 decimals or not.

    Absolute differences are ranked together, zeros included and ties with their mean rank; then the zeros are left out
    (Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", JASA 1959). If they were left out before
    the ranking, p could rise when every difference moves in favour of the method that is ahead. The p-value is exact
    given the ranks: the share of the 2^k equally likely signs of the k other differences whose sum of ranks is at least
    as far from its mean. With more than 200 differences, it is the normal approximation of that share.

    >>> signed_rank(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3]))
    1.0
    >>> signed_rank(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 0.0, 0.0, 0.4]))
    0.25
    """
    # In whole units of the last decimal: equal differences are then equal in floating point as well.
    differences = np.round(x * 10.0**DECIMALS) - np.round(y * 10.0**DECIMALS)
    differs = differences != 0
    double_rank = np.rint(2 * stats.rankdata(np.abs(differences))).astype(np.int64)[differs]  # whole numbers
    if not double_rank.size:
        return 1.0
    total, positive = int(double_rank.sum()), int(double_rank[differences[differs] > 0].sum())
    if double_rank.size > _MOST_EXACT:
        return math.erfc(abs(2 * positive - total) / math.sqrt(2.0 * float(np.square(double_rank).sum())))
    return min(1.0, 2 * _share_up_to(min(positive, total - positive), double_rank))


def _share_up_to(most: int, parts: npt.NDArray[np.int64]) -> float:
    """Share of all subsets of the parts whose sum is at most ``most``, counted one part at a time."""
    divisor = int(np.gcd.reduce(parts))
    share = np.zeros(most // divisor + 1)  # by sum
    share[0] = 1.0
    for part in parts // divisor:
        share[part:] += share[:-part].copy()
        share /= 2
    return float(share.sum())


def _cliques(
    methods: tuple[str, ...], rank: npt.NDArray[np.float64], not_different: npt.NDArray[np.bool_]
) -> tuple[tuple[str, ...], ...]:
    """Maximal stretches of two or more methods in rank order in which all pairs are alike."""
    order = np.argsort(rank, kind="stable")
    alike, n = not_different[np.ix_(order, order)], len(order)
    ends = [max(j for j in range(i + 1, n + 1) if alike[i:j, i:j].all()) for i in range(n)]
    return tuple(
        tuple(methods[k] for k in order[i:end])
        for i, (end, before) in enumerate(zip(ends, [0, *ends], strict=False))
        if end > max(i + 1, before)
    )
