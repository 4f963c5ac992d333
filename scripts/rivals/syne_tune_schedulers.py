"""Syne Tune's transfer schedulers, which know no conditions. On a table: the nearest row.

Zero-shot transfer is left out: that of release 0.16 fails on past studies of different configurations.
"""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pandas as pd
from syne_tune import config_space as cs
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.baselines import CQR, RandomSearch
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox
from syne_tune.optimizer.schedulers.transfer_learning.quantile_based.quantile_based_searcher import (
    QuantileBasedSurrogateSearcher,
)
from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
    TransferLearningTaskEvaluations,
)

from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Float, Int
from rivals.problems import Problem, complete


class SyneTuneScheduler:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int, *, scheduler: str) -> None:
        self.space, self.number = problem.space, 0
        space = {name: domain(parameter) for name, parameter in self.space.items()}  # type: ignore[arg-type]
        past = {
            name: TransferLearningTaskEvaluations(
                configuration_space=space,
                hyperparameters=pd.DataFrame([complete(self.space, trial.params) for trial in study]),
                objectives_names=["loss"],
                objectives_evaluations=-np.array([trial.value for trial in study])[:, None, None, None],
            )
            for name, study in problem.past.items()
        }
        if scheduler == "quantiles":
            searcher = QuantileBasedSurrogateSearcher(space, past, random_seed=seed)
            self.scheduler = SingleObjectiveScheduler(space, "loss", searcher=searcher, random_seed=seed)
        else:
            self.scheduler = BoundingBox(INNER[scheduler], space, "loss", past, random_seed=seed)

    def ask(self) -> Params:
        return self.space.active_part(self.scheduler.suggest().config)

    def tell(self, params: Params, value: float) -> None:
        params = complete(self.space, params)
        searched = self.scheduler.scheduler if isinstance(self.scheduler, BoundingBox) else self.scheduler
        if all(
            domain.is_valid(params[name]) for name, domain in searched.config_space.items()
        ):  # a box fails otherwise
            self.scheduler.on_trial_complete(Trial(self.number, params, datetime.now()), {"loss": -value})
            self.number += 1


INNER = {
    "box-random": lambda space, metric, minimize, seed: RandomSearch(space, [metric], minimize, seed),
    "box-cqr": lambda space, metric, minimize, seed: CQR(space, metric, minimize, seed),
}


def domain(parameter: Float | Int | Categorical) -> cs.Domain:
    if isinstance(parameter, Categorical):
        return cs.choice(list(parameter.choices))
    if isinstance(parameter, Int):
        return (cs.lograndint if parameter.log else cs.randint)(parameter.low, parameter.high)
    return (cs.loguniform if parameter.log else cs.uniform)(parameter.low, parameter.high)
