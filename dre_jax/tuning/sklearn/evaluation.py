"""The evaluation of configurations by scikit-learn's search, on all folds or on some."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from dre_jax.space.space import Params
from dre_jax.tuning.sklearn.fits import Call, Fits, rank_by_tier
from dre_jax.tuning.sklearn.folds import SomeFolds

Evaluate = Callable[..., dict[str, Any]]
"""What scikit-learn passes to `BaseSearchCV._run_search`."""
_MEAN = "mean_test_"


class Evaluation:
    """The configurations of a search that were evaluated, as rows of `cv_results_`, and the columns of their trials."""

    def __init__(self, search: Any, evaluate_candidates: Evaluate) -> None:
        """Creates an evaluation without configurations, for a search whose `fit` runs."""
        self._search, self._evaluate_candidates = search, evaluate_candidates
        error_score = search.error_score
        self.fits = Fits(search.n_splits_, math.nan if error_score == "raise" else float(error_score))
        self.columns: dict[str, list[int]] = {}
        """Further columns of `cv_results_`, of all rows."""
        self._refusal: ValueError | None = None
        self._results: dict[str, Any] = {}
        self._format_arguments: tuple[Any, ...] = ()
        self._metric: str | None = None

    def evaluate(self, rows: Sequence[int], folds: Sequence[int] | None = None, splitter: Any = None) -> None:
        """Fits and scores configurations of some rows.

        Args:
          rows: of the configurations.
          folds: numbers of folds; by default all.
          splitter: with as many folds as that of the search, which is the default.
        """
        folds = range(self.fits.n_folds) if folds is None else folds
        call = Call(rows, folds)
        splitter = SomeFolds(self._search.cv if splitter is None else splitter, folds)
        self.fits.calls.append(call)
        self._search.n_splits_ = len(folds)  # scikit-learn compares it with the splitter's
        try:
            self._results = self._evaluate_candidates([self.fits.candidates[row] for row in rows], cv=splitter)
        except ValueError as error:
            if not _is_refusal(error):
                raise
            self._refusal, call.has_failed = error, True
            warnings.warn(str(error).strip(), FitFailedWarning, stacklevel=2)
        else:
            self._metric = self._metric or self._searched_metric()
        finally:
            self._search.n_splits_ = self.fits.n_folds

    def scores(self, rows: Sequence[int]) -> list[np.ndarray]:
        """Returns the scores f64[n] of each of some rows on the n folds that it ran, NaN where a fit failed."""
        return self.fits.scores(rows, self._metric)

    def finish(self) -> None:
        """Completes the results that `fit` keeps. Raises scikit-learn's `ValueError` if all fits failed."""
        if self._refusal is not None and not self._results:
            raise self._refusal
        if self._results:
            self._results.update(self._search._format_results(*self._format_arguments))

    def format_results(self, base: Callable[..., Any], *arguments: Any) -> Any:
        """Returns `cv_results_` of all rows, as the base class makes them of complete fits.

        Args:
          base: `BaseSearchCV._format_results`.
          arguments: its own, of which the records of all fits are the third.
        """
        self._format_arguments = arguments
        fits = self.fits
        fits.records = arguments[2]
        more_results = self.columns if self.columns else arguments[3]
        results = base(fits.candidates, fits.n_folds, list(fits.filled()), more_results)
        fits.mark_unfinished(results)
        tiers = (fits.n_run() < fits.n_folds).astype(int)
        if "n_resources" in self.columns:  # scores of different budgets are not comparable
            _, tiers = np.unique(-np.array(self.columns["n_resources"]), return_inverse=True)
        if tiers.any():
            rank_by_tier(results, tiers)
        return results

    def add(self, candidates: Sequence[Params], **columns: Sequence[int]) -> range:
        """Adds configurations, with further columns; returns their rows."""
        for name, values in columns.items():
            self.columns.setdefault(name, []).extend(values)
        return self.fits.add(candidates)

    def _searched_metric(self) -> str:
        """Returns the metric that the search maximises. Raises `ValueError` if `refit` must name it and does not."""
        metrics = [name.removeprefix(_MEAN) for name in self._results if name.startswith(_MEAN)]
        if metrics == ["score"]:
            return metrics[0]
        search = self._search
        search._check_refit_for_multimetric(metrics)
        if isinstance(search.refit, str):
            return search.refit
        rule = f"of the metrics {', '.join(metrics)} the search maximises the first, {metrics[0]}"
        warnings.warn(f"{rule}: list another one first, or name it by refit", UserWarning, stacklevel=2)
        return metrics[0]


def _is_refusal(error: ValueError) -> bool:
    """Returns whether an error is scikit-learn's for fits of which every one failed."""
    text = str(error).strip()
    return text.startswith("All the ") and "fits failed" in text.splitlines()[0]
