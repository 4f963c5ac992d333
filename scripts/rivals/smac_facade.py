"""SMAC's facade for hyperparameter optimisation, without a past. On a table: the nearest row."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ConfigSpace import Configuration
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue

from dre_jax.space.space import Params
from dre_jax.tuning import to_configspace
from rivals.problems import Problem


class SmacFacade:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        self.space, self.seed = to_configspace(problem.space, seed=seed), seed
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        scenario = Scenario(self.space, deterministic=True, n_trials=1000, seed=seed, output_directory=folder)
        facade = HyperparameterOptimizationFacade
        self.smac = facade(
            scenario,
            lambda config, seed=0: 0.0,
            initial_design=facade.get_initial_design(scenario, n_configs=0),
            config_selector=facade.get_config_selector(scenario, retrain_after=1),  # its default is every eighth trial
            overwrite=True,
            logging_level=50,
        )

    def ask(self) -> Params:
        return dict(self.smac.ask().config)

    def tell(self, params: Params, value: float) -> None:
        info = TrialInfo(Configuration(self.space, values=params), seed=self.seed)
        self.smac.tell(info, TrialValue(cost=-value), save=False)
