"""The trials of a search with a fidelity: configurations pause at budgets, and the best ones go on."""

import warnings
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from sklearn.base import clone

from dre_jax.errors import DataError
from dre_jax.space.space import Params
from dre_jax.tuning.sklearn.budgets import ROWS, can_continue, with_budget
from dre_jax.tuning.sklearn.evaluation import Evaluation
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trials.trial import Trial


class FidelityTrials:
    """Runs the trials of an optimizer with a fidelity."""

    def __init__(
        self,
        optimizer: Optimizer,
        evaluation: Evaluation,
        estimator: Any,
        values: Callable[[Params], dict[str, Any]],
        part_of_rows: Callable[[int], Any],
    ) -> None:
        """Creates a search without trials.

        Args:
          optimizer: suggests the trials.
          evaluation: runs them.
          estimator: that is tuned.
          values: maps a configuration to parameters of the estimator.
          part_of_rows: maps a number of rows to the splitter of a training on them.
        """
        if optimizer.fidelity is None:
            raise DataError("trials with budgets need a study with a fidelity")
        self._optimizer, self._fidelity, self._evaluation = optimizer, optimizer.fidelity, evaluation
        self._estimator, self._values, self._part_of_rows = estimator, values, part_of_rows
        self._rows: dict[int, int] = {}  # of `cv_results_` by the number of the trial

    def run(self, n_iter: int, batch: int) -> None:
        """Runs trials until they have trained for as much as ``n_iter`` configurations at the highest budget do.

        If none has reached the highest budget by then, the best one is trained to it.
        """
        limit = n_iter * self._fidelity.highest
        while self._optimizer.total_budget < limit:
            trials, is_exhausted = self._ask(batch, limit)
            self._evaluate(trials)
            if is_exhausted:
                rule = (
                    f"no configuration of the space is left to train to {self._fidelity.name}={self._fidelity.highest}"
                )
                warnings.warn(f"{rule}: the search ends", UserWarning, stacklevel=4)
                break
        if not any(trial.state == "complete" for trial in self._optimizer.trials):
            self._complete_best()

    def _ask(self, batch: int, limit: float) -> tuple[list[Trial], bool]:
        """Returns the next trials, and whether the space has no more of them."""
        configurations = [trial.params for trial in self._optimizer.trials]
        trials: list[Trial] = []
        while len(trials) < batch and self._optimizer.total_budget < limit:
            trial = self._optimizer.ask()
            if trial.resumes is None and trial.params in configurations:
                return trials, True
            configurations.append(trial.params)
            if trial.resumes is not None and not self._can_continue(trial):
                trial.restart()  # so that its whole budget counts
            trials.append(trial)
        return trials, False

    def _can_continue(self, trial: Trial) -> bool:
        candidate = clone(self._candidate(trial), safe=False)
        is_parameter = self._fidelity.name != ROWS
        return is_parameter and can_continue(clone(self._estimator).set_params(**candidate), self._fidelity.name)

    def _candidate(self, trial: Trial) -> dict[str, Any]:
        return with_budget(self._values(trial.params), self._fidelity, trial.budget or self._fidelity.highest)

    def _complete_best(self) -> None:
        """Trains the best configuration so far to the highest budget; none if all have failed."""
        try:
            best = self._optimizer.best_so_far
        except DataError:
            return
        trial = self._optimizer.add_running(best.params, budget=self._fidelity.highest)
        self._evaluate([trial.with_fields(resumes=best.number)])

    def _evaluate(self, trials: Sequence[Trial]) -> None:
        """Evaluates trials at once, those of different numbers of rows one after the other; tells their scores."""

        def n_rows(trial: Trial) -> int:
            return int(trial.budget or 0) if self._fidelity.name == ROWS else 0

        for rows_of_fold, group in groupby(sorted(trials, key=n_rows), n_rows):
            batch = list(group)
            rows = self._evaluation.add(
                [self._candidate(trial) for trial in batch],
                n_resources=[int(trial.budget or 0) for trial in batch],
                resumes=[-1 if trial.resumes is None else self._rows[trial.resumes] for trial in batch],
            )
            self._rows.update(zip((trial.number for trial in batch), rows, strict=True))
            self._evaluation.evaluate(rows, splitter=self._part_of_rows(rows_of_fold) if rows_of_fold else None)
            for trial, scores in zip(batch, self._evaluation.scores(rows), strict=True):
                self._optimizer.tell(trial, float(scores.mean()))  # NaN: a fit failed
