"""BayBE with a task parameter. On a table: a discrete space of its rows; else numbers are continuous and rounded."""

from collections.abc import Sequence

import pandas as pd
from baybe import Campaign, Settings
from baybe.parameters import (
    CategoricalParameter,
    NumericalContinuousParameter,
    NumericalDiscreteParameter,
    TaskParameter,
)
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget

from dre_jax.space.space import Params
from dre_jax.tuning import Categorical
from rivals.problems import Problem, coordinates, params_at

NEW = "new task"


class BaybeCampaign:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        Settings(random_seed=seed).activate()
        self.space = problem.space
        past = [
            {**coordinates(self.space, trial.params), "task": task, "value": trial.value}
            for task, study in problem.past.items()
            for trial in study
        ]
        candidates = pd.DataFrame(
            [{**coordinates(self.space, row), "task": NEW} for row in rows or []]
        ).drop_duplicates()
        parameters = [TaskParameter("task", [*problem.past, NEW], active_values=[NEW])]
        for name, parameter in self.space.items():
            if isinstance(parameter, Categorical):
                parameters.append(CategoricalParameter(name, parameter.choices))
            elif rows is None:
                parameters.append(NumericalContinuousParameter(name, (0.0, 1.0)))
            else:
                values = {*candidates[name], *(trial[name] for trial in past)}
                parameters.append(NumericalDiscreteParameter(name, values))
        if rows is None:
            space = SearchSpace.from_product(parameters)
        else:
            space = SearchSpace.from_dataframe(candidates, parameters)
        self.campaign = Campaign(space, NumericalTarget("value").to_objective())
        self.campaign.add_measurements(pd.DataFrame(past))

    def ask(self) -> Params:
        [suggestion] = self.campaign.recommend(1).to_dict("records")
        return params_at(self.space, suggestion)

    def tell(self, params: Params, value: float) -> None:
        trial = {**coordinates(self.space, params), "task": NEW, "value": value}
        self.campaign.add_measurements(pd.DataFrame([trial]))
