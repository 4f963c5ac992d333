"""`DRESearchCV`: this library's search with scikit-learn's interface (extra `sklearn`)."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Self

import numpy as np

from dre_jax.checks import check_counts
from dre_jax.errors import MissingExtraError
from dre_jax.space.distributions import distributions_of
from dre_jax.space.space import Params, Space
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.surrogates.pretrained import pretrained_search
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.trial import Trial

try:
    from sklearn.base import is_classifier
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
    from sklearn.utils.metadata_routing import get_routing_for_object
    from sklearn.utils.multiclass import unique_labels
    from sklearn.utils.validation import _num_samples
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("scikit-learn", "sklearn") from error

__all__ = ["DRESearchCV"]

_Evaluate = Callable[[list[Params]], dict[str, Any]]


class DRESearchCV(BaseSearchCV):
    """Cross-validated search over hyperparameters, in place of `GridSearchCV`.

    Attributes, methods and options are those of `sklearn.model_selection.RandomizedSearchCV`; configurations are
    suggested as by `dre_jax.tuning.Optimizer`. All configurations are scored on the same folds. Configurations whose
    fits fail have `error_score` in `cv_results_` and are not tried again.

    Example:
      >>> from sklearn.datasets import load_iris
      >>> from sklearn.svm import SVC
      >>> search = DRESearchCV(SVC(), n_iter=2, random_state=0)
      >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9)
      True
    """

    cv: Any

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        surrogate: Surrogate | Literal["pretrained"] | None = "pretrained",
        *,
        n_iter: int = 30,
        batch: int = 1,
        config: EngineConfig | None = None,
        random_state: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = math.nan,
        return_train_score: bool = False,
        features: Mapping[str, Any] | None = None,
    ) -> None:
        """Creates a search, which `fit` runs.

        Args:
          estimator: the estimator to tune.
          space: its parameters by the names of `set_params`: a space, or what `RandomizedSearchCV` takes, such as lists
            and distributions of SciPy, or a list of such dictionaries (see `distributions_of`). None for the
            surrogate's space, or the default space of a model in `dre_jax.tuning.pretrained.FAMILIES`.
          surrogate: knowledge of past tasks, of the direction "maximize", which all scores of scikit-learn have. By
            default a shipped one of the model, for the score or the nearest metric, if it knows the space; None for
            none. After `fit`, `surrogate_` is the one in use.
          n_iter: number of configurations.
          batch: number of configurations that are suggested at once, and evaluated in parallel by `n_jobs`.
          config: settings of the engine.
          random_state: a seed, a `numpy.random.RandomState`, or None.
          scoring: see `RandomizedSearchCV`, as for all following arguments. The search maximises the metric that
            `refit` names, or the first of several with a warning, if `refit` is False or a function.
          n_jobs: number of processes.
          refit: whether the best configuration is fitted to all data.
          cv: the cross-validation splitter.
          verbose: verbosity.
          pre_dispatch: number of jobs that are dispatched in advance.
          error_score: the score of a fit that fails; "raise" ends the search.
          return_train_score: whether `cv_results_` has them.
          features: features of the task, as of `dre_jax.tuning.Optimizer`. If the surrogate knows features of these
            names, ``rows``, ``columns`` and ``classes`` are those of the data by default.
        """
        self.space = space
        self.surrogate = surrogate
        self.n_iter = n_iter
        self.batch = batch
        self.config = config
        self.random_state = random_state
        self.features = features
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Runs the search; see `RandomizedSearchCV.fit`."""
        cv = self.cv
        # Batches are evaluated one by one, and a splitter that shuffles would give each batch other folds.
        self.cv = _SameSplits(check_cv(cv, y, classifier=is_classifier(self.estimator)))
        self._batches: list[_Batch] = []
        self._data = X, y if is_classifier(self.estimator) else None
        try:
            super().fit(X, y, **params)
        finally:
            self.cv = cv
            for name in _OF_FIT:
                self.__dict__.pop(name, None)
        return self

    def _run_search(self, evaluate_candidates: _Evaluate) -> None:
        """Asks for configurations, evaluates them, and tells their scores; `fit` calls it."""
        check_counts(1, n_iter=self.n_iter, batch=self.batch)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        converter = None if self.space is None else distributions_of(self.space)
        space, self.surrogate_ = self._space_and_surrogate(None if converter is None else converter.space)
        options: dict[str, Any] = {"seed": seed, "config": self.config, "features": self._features(self.surrogate_)}
        optimizer = Optimizer(space, self.surrogate_, direction="maximize", **options)
        refusal: ValueError | None = None
        results: dict[str, Any] = {}
        metric: str | None = None
        is_exhausted = False
        while len(optimizer.trials) < self.n_iter and not is_exhausted:
            n = min(self.batch, self.n_iter - len(optimizer.trials))
            trials = _ask_new(optimizer, n)
            is_exhausted = len(trials) < n
            if is_exhausted:  # the folds are the same, so that nothing is left to learn
                rule = f"the space has {len(optimizer.trials) - 1} configurations, fewer than n_iter={self.n_iter}"
                warnings.warn(f"{rule}: the search ends with these", UserWarning, stacklevel=2)
            if not trials:
                break
            batch = _Batch([trial.params if converter is None else converter.values(trial.params) for trial in trials])
            self._batches.append(batch)
            try:
                results = evaluate_candidates(batch.candidates)
            except ValueError as error:
                if not _is_refusal(error):
                    raise
                refusal, batch.has_failed = error, True
                scores = [float(self.error_score)] * len(trials)
                warnings.warn(str(error).strip(), FitFailedWarning, stacklevel=2)
            else:
                metric = metric or self._metric(results)
                scores = results[_MEAN + metric][-len(trials) :]
            for trial, score in zip(trials, scores, strict=True):
                optimizer.tell(trial, float(score))  # NaN: a fit failed
        if refusal is not None and not results:
            raise refusal
        if self._batches[-1].has_failed:  # since the last results; `fit` keeps this dictionary
            results.update(self._format_results(*self._format_arguments))

    def _space_and_surrogate(self, space: Space | None) -> tuple[Space | None, Surrogate | None]:
        """Returns the search space and the surrogate. Raises `ConfigError` if there is no space."""
        scoring = self.scoring
        if isinstance(scoring, Mapping | list | tuple | set):
            name = self.refit if isinstance(self.refit, str) else next(iter(scoring), None)
            scoring = scoring.get(name, name) if isinstance(scoring, Mapping) else name
        if self.surrogate == "pretrained":
            return pretrained_search(self.estimator, space, scoring)
        if self.surrogate is None and space is None:
            return pretrained_search(self.estimator, None, None)[0], None
        return space, self.surrogate

    def _features(self, surrogate: Surrogate | None) -> Mapping[str, Any] | None:
        """Returns the features of the task: those of the data that the surrogate uses, and the user's."""
        if surrogate is None or surrogate.features is None or not surrogate.uses_features:
            return self.features
        known_names = surrogate.features.types.keys() & set(_DATA_FEATURES)
        features = data_features(*self._data) if known_names else {}
        return {name: features[name] for name in known_names & features.keys()} | dict(self.features or {}) or None

    def _format_results(
        self, candidate_params: list[Params], n_splits: int, out: list[dict[str, Any]], more_results: Any = None
    ) -> Any:
        """Inserts the configurations whose fits all failed, which scikit-learn refuses to score."""
        self._format_arguments = candidate_params, n_splits, out, more_results
        candidates, fits = iter(candidate_params), iter(out)
        all_candidates: list[Params] = []
        all_fits: list[dict[str, Any]] = []
        for batch in self._batches:
            n = len(batch.candidates)
            all_candidates += batch.candidates if batch.has_failed else islice(candidates, n)
            failed_fits = (_failed_fit(out[0], self.error_score) for _ in range(n * n_splits))
            all_fits += failed_fits if batch.has_failed else islice(fits, n * n_splits)
        return super()._format_results(all_candidates, n_splits, all_fits, more_results)

    def _metric(self, results: Mapping[str, Any]) -> str:
        """Returns the metric that the search maximises. Raises `ValueError` if `refit` must name it and does not."""
        metrics = [name.removeprefix(_MEAN) for name in results if name.startswith(_MEAN)]
        if metrics == ["score"]:
            return metrics[0]
        self._check_refit_for_multimetric(metrics)
        if isinstance(self.refit, str):
            return self.refit
        rule = f"of the metrics {', '.join(metrics)} the search maximises the first, {metrics[0]}"
        warnings.warn(f"{rule}: list another one first, or name it by refit", UserWarning, stacklevel=2)
        return metrics[0]

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state for the workers, without the part that only a running `fit` needs."""
        return {name: value for name, value in super().__getstate__().items() if name not in _OF_FIT}


def _ask_new(optimizer: Optimizer, n: int) -> list[Trial]:
    """Returns n trials of new configurations; fewer, and a running trial of an old one, if the space has no more."""
    configurations = [trial.params for trial in optimizer.trials]
    trials: list[Trial] = []
    while len(trials) < n and (trial := optimizer.ask()).params not in configurations:
        configurations.append(trial.params)
        trials.append(trial)
    return trials


_DATA_FEATURES = ("rows", "columns", "classes")


def data_features(X: Any, y: Any) -> dict[str, int]:
    """Returns the numbers of rows and columns of data, and of classes unless y is None, as far as they are known.

    Example:
      >>> data_features([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["a", "b", "a"])
      {'rows': 3, 'columns': 2, 'classes': 2}
    """
    features = {"rows": _num_samples(X)}
    if len(shape := np.shape(X)) == 2:
        features["columns"] = shape[1]
    if y is not None:
        features["classes"] = len(unique_labels(y))
    return features


_MEAN = "mean_test_"
_OF_FIT = ("_batches", "_data", "_format_arguments")
"""Attributes that exist while `fit` runs."""


@dataclass
class _Batch:
    """Configurations that are evaluated at once."""

    candidates: list[Params]
    has_failed: bool = False
    """Whether all their fits failed."""


class _SameSplits:
    """A splitter whose folds are drawn once."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._splits: list[Any] | None = None

    def split(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yields the folds of the first call."""
        if self._splits is None:
            self._splits = list(self._splitter.split(*arguments, **options))
        yield from self._splits

    def get_n_splits(self, *arguments: Any, **options: Any) -> Any:
        """Returns the number of folds."""
        return self._splitter.get_n_splits(*arguments, **options)

    def get_metadata_routing(self) -> Any:
        """Returns the routing of the splitter."""
        return get_routing_for_object(self._splitter)


def _failed_fit(fit: Mapping[str, Any], error_score: float) -> dict[str, Any]:
    """Returns the record of a fit that failed, from the record of another one."""
    scores = fit["test_scores"]
    failed_scores = dict.fromkeys(scores, error_score) if isinstance(scores, dict) else error_score
    times = {"fit_time": math.nan, "score_time": math.nan}
    return {**fit, **times, **{name: failed_scores for name in ("test_scores", "train_scores") if name in fit}}


def _is_refusal(error: ValueError) -> bool:
    """Returns whether an error is scikit-learn's for a batch in which every fit failed."""
    text = str(error).strip()
    return text.startswith("All the ") and "fits failed" in text.splitlines()[0]
