"""The search class of scikit-learn."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, indexable

from dre_jax.checks import check_counts
from dre_jax.errors import ConfigError
from dre_jax.space.distributions import distributions_of
from dre_jax.space.space import Params, Space
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.sklearn.budgets import ROWS, find_fidelity
from dre_jax.tuning.sklearn.data_features import DATA_FEATURES, class_labels, data_features
from dre_jax.tuning.sklearn.evaluation import Evaluate, Evaluation
from dre_jax.tuning.sklearn.fidelity_trials import FidelityTrials
from dre_jax.tuning.sklearn.folds import PartialFolds, SameFolds
from dre_jax.tuning.sklearn.racing import Estimate, FoldRace, run_all_folds, run_race
from dre_jax.tuning.sklearn.resumable import Resumable
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.surrogates.pretrained import pretrained_search
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.trial import Trial

__all__ = ["DRESearchCV"]


class DRESearchCV(BaseSearchCV):
    """Cross-validated search over hyperparameters, in place of `GridSearchCV`.

    Attributes, methods and options are those of `sklearn.model_selection.RandomizedSearchCV`; configurations are
    suggested as by `dre_jax.tuning.Optimizer`. All configurations are scored on the same folds. Configurations whose
    fits fail have `error_score` in `cv_results_` and are not tried again.

    With a fidelity, `cv_results_` has a row for each trial: ``n_resources`` is its budget, and ``resumes`` the row that
    it continues, -1 for a new configuration. `best_score_` and the others are of the highest budget, at which the best
    estimator is trained in one go (on all rows, with "n_samples").

    ``n_estimators`` and ``max_iter`` of an estimator with ``warm_start``, also as the last step of a pipeline, continue
    the models of the folds. These lie in a temporary folder until `fit` ends, those of all configurations, so that
    processes share them: mind the disk. Other parameters train from nothing at each budget. So do models that cannot be
    pickled, and `SGDClassifier` and its relatives, whose warm start begins the learning rate anew. "n_samples" trains
    from nothing on a random part of each training fold, stratified by class; larger parts contain smaller ones.

    Example:
      >>> from sklearn.datasets import load_iris
      >>> from sklearn.svm import SVC
      >>> search = DRESearchCV(SVC(), n_iter=2, random_state=0)
      >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9)
      True
    """

    cv: Any
    estimator: Any
    best_estimator_: Any

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
        racing: bool = False,
        fidelity: Fidelity | str | None = None,
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
          n_iter: number of configurations. With a fidelity, trials train for as much as this many configurations do at
            the highest budget. If none has reached it by then, the best one is trained to it.
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
          racing: whether a configuration that is behind the best one after some folds, by more than chance, gets no
            further fold; see `dre_jax.tuning.sklearn.racing`. `cv_results_` then has NaN for splits that have not run,
            the mean of those that have, and a rank behind all configurations that ran all folds. `n_folds_saved_` is
            the number of folds that did not run. The test is made after two folds, four, eight and so on, whatever
            `n_jobs` is. If `refit` is a function, which may compare any configurations, all folds run.
          fidelity: a parameter that is the budget of a training, such as "n_estimators" or "max_iter" ("clf__max_iter"
            of a pipeline), or "n_samples" for rows of data: configurations pause at some budgets, and the best ones go
            on. A name stands for budgets from an eighth of the estimator's value, or of the rows of a training fold, to
            all of it; a `Fidelity` of any integer parameter has its own. It must not be searched, and needs
            ``racing=False``, as budgets already end the worst trainings.
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
        self.racing = racing
        self.fidelity = fidelity
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
        cv, estimator = self.cv, self.estimator
        # Batches are evaluated one by one, and a splitter that shuffles would give each batch other folds.
        self.cv = SameFolds(check_cv(cv, y, classifier=is_classifier(estimator)))
        self._data = X, y if is_classifier(estimator) else None
        with TemporaryDirectory(prefix="dre_jax-") as folder:
            try:
                if self._fidelity_name == ROWS:
                    self._n_rows = self._largest_fold(X, y, params)
                elif self._fidelity_name is not None:
                    self.estimator = Resumable(estimator, self._fidelity_name, Path(folder))
                super().fit(X, y, **params)
                if self.estimator is not estimator and self.refit:
                    self.best_estimator_ = self.best_estimator_.model
            finally:
                self.cv, self.estimator = cv, estimator
                for name in _OF_FIT:
                    self.__dict__.pop(name, None)
        return self

    @property
    def _fidelity_name(self) -> str | None:
        return self.fidelity.name if isinstance(self.fidelity, Fidelity) else self.fidelity

    @property
    def _tuned_estimator(self) -> Any:
        return self.estimator.estimator if isinstance(self.estimator, Resumable) else self.estimator

    def _largest_fold(self, X: Any, y: Any, params: Mapping[str, Any]) -> int:
        """Returns the number of rows of the largest training fold."""
        X, y = indexable(X, y)
        options = self._get_routed_params_for_fit(dict(params)).splitter.split
        return max(len(train) for train, _ in self.cv.split(X, y, **options))

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """Asks for configurations, evaluates them, and tells their scores; `fit` calls it."""
        check_counts(1, n_iter=self.n_iter, batch=self.batch)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        converter = None if self.space is None else distributions_of(self.space)
        space, self.surrogate_ = self._space_and_surrogate(None if converter is None else converter.space)
        options: dict[str, Any] = {"seed": seed, "config": self.config, "features": self._features(self.surrogate_)}
        if self.fidelity is not None:
            if self.racing:
                raise ConfigError("a fidelity needs racing=False: budgets already end the worst trainings")
            known_space = space if space is not None or self.surrogate_ is None else self.surrogate_.space
            n_rows = self.__dict__.get("_n_rows", 0)
            options["fidelity"] = find_fidelity(self.fidelity, self._tuned_estimator, known_space, n_rows)
        optimizer = Optimizer(space, self.surrogate_, direction="maximize", **options)
        self._evaluation = evaluation = Evaluation(self, evaluate_candidates)
        values = dict if converter is None else converter.values
        if self.fidelity is None:
            self._run_trials(optimizer, evaluation, values)
        else:
            part_of_rows = partial(PartialFolds, self.cv, seed=seed, labels=class_labels(self._data[1]))
            trials = FidelityTrials(optimizer, evaluation, self._tuned_estimator, values, part_of_rows)
            trials.run(self.n_iter, self.batch)
        evaluation.finish()
        fits = evaluation.fits
        self.n_folds_saved_ = int(fits.n_folds * len(fits.candidates) - fits.n_run().sum())

    def _run_trials(self, optimizer: Optimizer, evaluation: Evaluation, values: Callable[[Params], Any]) -> None:
        """Runs trials of new configurations on all folds, or on those of a race."""
        # A function that selects the best configuration may compare all of them, on all folds.
        race = FoldRace(evaluation.fits.n_folds) if self.racing and not callable(self.refit) else None
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
            rows = evaluation.add([values(trial.params) for trial in trials])
            estimates = run_race(race, evaluation, rows) if race else run_all_folds(evaluation, rows)
            for trial, estimate in zip(trials, estimates, strict=True):
                _tell(optimizer, trial, estimate)

    def _space_and_surrogate(self, space: Space | None) -> tuple[Space | None, Surrogate | None]:
        """Returns the search space and the surrogate. Raises `ConfigError` if there is no space."""
        scoring = self.scoring
        if isinstance(scoring, Mapping | list | tuple | set):
            name = self.refit if isinstance(self.refit, str) else next(iter(scoring), None)
            scoring = scoring.get(name, name) if isinstance(scoring, Mapping) else name
        if self.surrogate == "pretrained":
            return pretrained_search(self._tuned_estimator, space, scoring)
        if self.surrogate is None and space is None:
            return pretrained_search(self._tuned_estimator, None, None)[0], None
        return space, self.surrogate

    def _features(self, surrogate: Surrogate | None) -> Mapping[str, Any] | None:
        """Returns the features of the task: those of the data that the surrogate uses, and the user's."""
        if surrogate is None or surrogate.features is None or not surrogate.uses_features:
            return self.features
        known_names = surrogate.features.types.keys() & set(DATA_FEATURES)
        features = data_features(*self._data) if known_names else {}
        return {name: features[name] for name in known_names & features.keys()} | dict(self.features or {}) or None

    def _format_results(self, *arguments: Any) -> Any:
        """Returns the results of all configurations, of which scikit-learn passes those whose fits did not all fail."""
        return self._evaluation.format_results(super()._format_results, *arguments)

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


def _tell(optimizer: Optimizer, trial: Trial, estimate: Estimate) -> None:
    """Tells a score, NaN if a fit failed, with its standard error if the method uses one."""
    try:
        optimizer.tell(trial, estimate.mean, stderr=estimate.stderr)
    except ConfigError:
        optimizer.tell(trial, estimate.mean)


_OF_FIT = ("_data", "_evaluation", "_n_rows")
"""Attributes that exist while `fit` runs."""
