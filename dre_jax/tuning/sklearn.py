"""`DRESearchCV`: this library's search with scikit-learn's interface (extra `sklearn`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.tuning.optimizer import Optimizer
from dre_jax.tuning.space.space import Params
from dre_jax.tuning.trial import Trial

try:
    from sklearn.exceptions import FitFailedWarning
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("scikit-learn", "sklearn") from error

if TYPE_CHECKING:
    from dre_jax.tuning.engine import EngineConfig
    from dre_jax.tuning.space.space import Space
    from dre_jax.tuning.surrogate import Surrogate

__all__ = ["DRESearchCV"]

_Evaluate = Callable[[list[Params]], dict[str, Any]]


class DRESearchCV(BaseSearchCV):
    """Cross-validated search over hyperparameters, in place of `GridSearchCV`.

    Attributes, methods and options are those of `sklearn.model_selection.RandomizedSearchCV`; configurations are
    suggested as by `dre_jax.tuning.Optimizer`. Configurations whose fits fail are not tried again; those whose fits all
    fail are evaluated once more with the next ones, as scikit-learn refuses to score them alone.

    Example:
      >>> from sklearn.datasets import load_iris
      >>> from sklearn.svm import SVC
      >>> from dre_jax.tuning import Float
      >>> search = DRESearchCV(SVC(), {"C": Float(1e-2, 1e2, log=True)}, n_iter=4, random_state=0)
      >>> bool(search.fit(*load_iris(return_X_y=True)).best_score_ > 0.9)
      True
    """

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any] | None = None,
        surrogate: Surrogate | None = None,
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
    ) -> None:
        """Creates a search, which `fit` runs.

        Args:
          estimator: the estimator to tune.
          space: its parameters, by the names of `set_params`; None for the surrogate's.
          surrogate: knowledge of past tasks, of the direction "maximize", which all scores of scikit-learn have.
          n_iter: number of configurations.
          batch: number of configurations that are suggested, and evaluated in parallel with `n_jobs`, at once.
          config: settings of the engine.
          random_state: a seed, a `numpy.random.RandomState`, or None.
          scoring: see `RandomizedSearchCV`, as all that follow. Of several metrics, `refit` names the one to maximise.
          n_jobs: number of processes.
          refit: whether the best configuration is fitted to all data.
          cv: the cross-validation splitter.
          verbose: verbosity.
          pre_dispatch: number of jobs that are dispatched in advance.
          error_score: the score of a fit that fails; "raise" ends the search.
          return_train_score: whether `cv_results_` has them.
        """
        self.space = space
        self.surrogate = surrogate
        self.n_iter = n_iter
        self.batch = batch
        self.config = config
        self.random_state = random_state
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

    def _run_search(self, evaluate_candidates: _Evaluate) -> None:
        """Asks for configurations, evaluates them, and tells their scores; `fit` calls it."""
        for name in ("n_iter", "batch"):
            if not getattr(self, name) >= 1:
                raise ConfigError(f"{name} >= 1 must hold, but got {name}={getattr(self, name)!r}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        optimizer = Optimizer(
            self.space,
            self.surrogate,
            direction="maximize",
            seed=seed,
            config=self.config,
        )
        unscored: list[Params] = []
        refusal: ValueError | None = None
        scored = False
        while len(optimizer.trials) < self.n_iter:
            # One by one: a space may have fewer configurations than a batch.
            trials = [optimizer.ask() for _ in range(min(self.batch, self.n_iter - len(optimizer.trials)))]
            candidates = unscored + [trial.params for trial in trials]
            try:
                results = evaluate_candidates(candidates)
            except ValueError as error:
                if not _is_refusal(error):
                    raise
                unscored, refusal = candidates, error
                for trial in trials:
                    optimizer.tell_failed(trial)
                continue
            unscored, scored = [], True
            _tell(optimizer, trials, self._scores(results))
        if refusal is not None and not scored:
            raise refusal
        if unscored:
            message = f"All fits of the last {len(unscored)} configurations failed: they are not in cv_results_."
            warnings.warn(message, FitFailedWarning, stacklevel=2)

    def _scores(self, results: Mapping[str, Any]) -> Sequence[float]:
        name = f"mean_test_{self.refit}" if isinstance(self.refit, str) else "mean_test_score"
        name = name if name in results else "mean_test_score"
        if name not in results:
            raise ConfigError(f"refit must name the metric to maximise where there are several, but got {self.refit!r}")
        return [float(score) for score in results[name]]


def _tell(optimizer: Optimizer, trials: Sequence[Trial], scores: Sequence[float]) -> None:
    """Tells the last scores; NaN is the mean of failed fits."""
    for trial, score in zip(trials, scores[-len(trials) :], strict=True):
        optimizer.tell(trial, score)


def _is_refusal(error: ValueError) -> bool:
    """Returns whether an error is scikit-learn's for a batch of which every fit failed."""
    text = str(error).strip()
    return text.startswith("All the ") and "fits failed" in text.splitlines()[0]
