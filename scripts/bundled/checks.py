"""What the dataset promises, checked before it is written, and how hard it is: the figures of PROVENANCE.md."""

from __future__ import annotations

import numpy as np

from .evaluate import Result
from .tasks import Array

BEST_SHARE = 0.05
SplitResults = dict[str, dict[str, Result]]
"""By split, then by task."""


def best_share(responses: list[float]) -> float:
    """The share of rows that have the best value."""
    y = np.asarray(responses)
    return float(np.mean(y == y.max()))


def check(name: str, result: Result, limit: float = BEST_SHARE) -> None:
    y = np.asarray(result.responses)
    if not np.isfinite(y).all():
        raise ValueError(f"responses must be finite, but {name} has {int((~np.isfinite(y)).sum())} that are not")
    if y.max() == y.min():
        raise ValueError(f"responses must differ, but {name} has {y.max()} everywhere")
    share = best_share(result.responses)
    if share > limit:
        raise ValueError(f"at most {limit:.0%} of the rows may share the best value, but {share:.1%} do in {name}")
    if len({tuple(row) for row in result.rows}) < len(result.rows):
        raise ValueError(f"configurations must differ, but {name} has one twice")


def normalised_regret(responses: list[float]) -> Array:
    """(n,): 0 for the best row of the task, 1 for the worst."""
    y = np.asarray(responses)
    return np.asarray((y.max() - y) / (y.max() - y.min()))


def random_search(responses: list[float], trials: int) -> float:
    """Mean regret of random search without replacement, exact: the best of `trials` rows by rank."""
    regret = np.sort(normalised_regret(responses))
    count, alive, expected = len(regret), 1.0, 0.0
    for position, value in enumerate(regret):
        # the chance that no row before this one was drawn, times that this one is
        hit = min(1.0, trials / (count - position))
        expected += alive * hit * value
        alive *= 1.0 - hit
    return float(expected)


def shared_regrets(results: dict[str, Result], rows: list[list[float]]) -> Array:
    """(tasks, shared): the regret of every shared configuration on every task."""
    table = []
    for result in results.values():
        where = {tuple(row): i for i, row in enumerate(result.rows)}
        table.append(normalised_regret(result.responses)[[where[tuple(row)] for row in rows]])
    return np.asarray(table)


def summary(splits: SplitResults, rows: list[list[float]]) -> dict[str, float]:
    """The figures of one space, over its test tasks. `rows` are the configurations that all tasks share."""
    test = splits["test"].values()
    every = [result for split in splits.values() for result in split.values()]
    test_shared = shared_regrets(splits["test"], rows)
    best_on_train = int(shared_regrets(splits["train"], rows).mean(axis=0).argmin())
    return {
        "best share": max(best_share(r.responses) for r in every),
        "fewest distinct": min(len(set(r.responses)) for r in every),
        **{f"random {t}": float(np.mean([random_search(r.responses, t) for r in test])) for t in (5, 10, 25)},
        "one trial": float(test_shared.mean()),
        "best average": float(test_shared[:, best_on_train].mean()),
        "best shared": float(test_shared.min(axis=1).mean()),
        "seconds": sum(r.seconds for r in every),
    }
