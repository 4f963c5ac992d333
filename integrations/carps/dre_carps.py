"""An optimizer for CARP-S (https://github.com/automl/CARP-S): `Optimizer` of dre_jax, with a surrogate if there is one.

    PYTHONPATH=integrations/carps python -m carps.run --config-dir integrations/carps/configs \
        +optimizer/dre_jax=config +task/BBOB=cfg_2_1_0 seed=1 [optimizer.surrogate=FOLDER]
"""

from __future__ import annotations

from typing import Any

from carps.optimizers.optimizer import Optimizer as CarpsOptimizer
from carps.utils.trials import StatusType, TrialInfo, TrialValue
from ConfigSpace import Configuration, ConfigurationSpace

from dre_jax.tuning import Optimizer, Space, Surrogate, from_configspace


class DREOptimizer(CarpsOptimizer):
    """Suggestions of dre_jax for tasks of one objective and one fidelity."""

    def __init__(self, task: Any, *, surrogate: str | None = None, seed: int = 0, **options: Any) -> None:
        super().__init__(task, **options)
        self.configspace = task.objective_function.configspace
        self.surrogate = None if surrogate is None else Surrogate.load(surrogate)
        self.seed = seed
        self._values: dict[int, tuple[TrialInfo, TrialValue]] = {}

    def convert_configspace(self, configspace: ConfigurationSpace) -> Space:
        return from_configspace(configspace)

    def _setup_optimizer(self) -> Optimizer:
        space = self.convert_configspace(self.configspace)
        return Optimizer(space, self.surrogate, direction="minimize", seed=self.seed)

    def convert_to_trial(self, trial: Any) -> TrialInfo:  # type: ignore[override]
        config = Configuration(self.configspace, values=trial.params)
        return TrialInfo(config=config, seed=self.seed, name=str(trial.number))

    def ask(self) -> TrialInfo:
        return self.convert_to_trial(self.solver.ask())

    def tell(self, trial_info: TrialInfo, trial_value: TrialValue) -> None:
        number = int(str(trial_info.name))
        self._values[number] = trial_info, trial_value
        if trial_value.status == StatusType.SUCCESS:
            self.solver.tell(number, trial_value.cost)
        else:
            self.solver.tell_failed(number)

    def get_current_incumbent(self) -> tuple[TrialInfo, TrialValue] | None:
        is_complete = any(trial.state == "complete" for trial in self.solver.trials)
        return self._values[self.solver.best.number] if is_complete else None
