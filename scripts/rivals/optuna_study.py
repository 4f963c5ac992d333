"""Optuna's samplers, alone or with the best configuration of each past study enqueued. On a table: the nearest row."""

from collections.abc import Sequence

import optuna
from live.contestants import optuna_sampler, suggest

from dre_jax.space.space import Params
from dre_jax.tuning.optuna import to_optuna
from rivals.problems import Problem, best_of_past


class OptunaStudy:
    def __init__(
        self, problem: Problem, rows: Sequence[Params] | None, seed: int, *, sampler: str, enqueue: bool = False
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(direction="maximize", sampler=optuna_sampler(sampler, seed))
        self.space, self.distributions = problem.space, to_optuna(problem.space)
        self.trial: optuna.Trial | None = None
        for params in best_of_past(problem.past) if enqueue else []:
            self.study.enqueue_trial(params)

    def ask(self) -> Params:
        self.trial = self.study.ask()
        return suggest(self.trial, self.space)

    def tell(self, params: Params, value: float) -> None:
        if self.trial is not None and self.trial.params == params:
            self.study.tell(self.trial, value)
            return
        if self.trial is not None:  # another row was evaluated
            self.study.tell(self.trial, state=optuna.trial.TrialState.FAIL)
        distributions = {name: self.distributions[name] for name in params}
        self.study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
