"""The fits of a search by configuration and fold, and `cv_results_` of configurations that did not run all folds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata

from dre_jax.space.space import Params

Fit = dict[str, Any]
"""What scikit-learn records of a fit: times, scores, and the number of test rows."""


@dataclass
class Call:
    """Fits that ran at once: those of some configurations on the same folds."""

    rows: Sequence[int]
    folds: Sequence[int]
    has_failed: bool = False
    """Whether all of them failed, so that scikit-learn has refused to record them."""


@dataclass
class Fits:
    """The fits of all configurations, which are rows of `cv_results_`, on K folds."""

    n_folds: int
    error_score: float
    candidates: list[Params] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    records: list[Fit] = field(default_factory=list)
    """Of the calls that have not failed, in their order: folds within configurations."""

    def add(self, candidates: Sequence[Params]) -> range:
        """Adds configurations; returns their rows."""
        first = len(self.candidates)
        self.candidates += candidates
        return range(first, len(self.candidates))

    def by_row(self) -> list[dict[int, Fit]]:
        """Returns the fits of each configuration by fold."""
        table: list[dict[int, Fit]] = [{} for _ in self.candidates]
        records = iter(self.records)
        for call in self.calls:
            for row in call.rows:
                for fold in call.folds:
                    failed = call.has_failed
                    table[row][fold] = failed_fit(self.records[0], self.error_score) if failed else next(records)
        return table

    def scores(self, rows: Sequence[int], metric: str | None) -> list[np.ndarray]:
        """Returns the scores f64[n] of configurations on their n folds, in the order of the folds.

        The metric may be None as long as all fits have failed.
        """
        if not self.records:
            n = sum(len(call.folds) for call in self.calls if rows[0] in call.rows)
            return [np.full(n, self.error_score)] * len(rows)
        table = self.by_row()
        return [np.array([_score(table[row][fold], metric) for fold in sorted(table[row])]) for row in rows]

    def n_run(self) -> np.ndarray:
        """Returns how many folds each configuration ran, i[n]."""
        return np.array([len(fits) for fits in self.by_row()], int)

    def filled(self) -> Iterator[Fit]:
        """Yields K fits of each configuration; one that has not run has the means of those that have."""
        for fits in self.by_row():
            yield from (fits[fold] if fold in fits else _mean_fit(list(fits.values())) for fold in range(self.n_folds))

    def mark_unfinished(self, results: dict[str, Any]) -> None:
        """Corrects `cv_results_` of `filled`: NaN for what has not run, deviations over the folds that have."""
        for row, fits in enumerate(self.by_row()):
            if len(fits) == self.n_folds:
                continue
            for name in results:
                if name.startswith("std_"):  # the means that were filled in have no deviation
                    results[name][row] *= math.sqrt(self.n_folds / len(fits))
            for fold in set(range(self.n_folds)) - fits.keys():
                for name in results:
                    if name.startswith(f"split{fold}_"):
                        results[name][row] = math.nan


def rank_by_tier(results: dict[str, Any], tiers: np.ndarray) -> None:
    """Ranks configurations by the mean of each metric within tiers i[n], of which a higher one follows a lower one.

    Example:
      >>> results = {"mean_test_score": np.array([0.9, 0.5, 0.7]), "rank_test_score": None}
      >>> rank_by_tier(results, np.array([1, 0, 0]))
      >>> results["rank_test_score"].tolist()
      [3, 2, 1]
    """
    for name in [name for name in results if name.startswith("rank_test_")]:
        means = np.nan_to_num(results["mean_test_" + name.removeprefix("rank_test_")], nan=-math.inf)
        orders = rankdata(-means, method="dense") + len(means) * np.where(np.isneginf(means), tiers.max() + 1, tiers)
        results[name] = rankdata(orders, method="min").astype(np.int32)


def failed_fit(fit: Fit, error_score: float) -> Fit:
    """Returns the record of a fit that failed, from the record of another one."""
    scores = fit["test_scores"]
    failed_scores = dict.fromkeys(scores, error_score) if isinstance(scores, dict) else error_score
    times = {"fit_time": math.nan, "score_time": math.nan}
    return {**fit, **times, **{name: failed_scores for name in _SCORES if name in fit}}


_SCORES = ("test_scores", "train_scores")


def _score(fit: Fit, metric: str | None) -> float:
    scores = fit["test_scores"]
    return float(scores[metric] if isinstance(scores, dict) else scores)


def _mean_fit(fits: Sequence[Fit]) -> Fit:
    names = ("fit_time", "score_time", *(name for name in _SCORES if name in fits[0]))
    return {**fits[0], **{name: _mean([fit[name] for fit in fits]) for name in names}}


def _mean(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Mapping):
        return {name: np.mean([value[name] for value in values]) for name in values[0]}
    return np.mean(values)
