"""Ax with transfer learning (BOTL), which knows no conditions there. On a table: the nearest row."""

from collections.abc import Iterable, Sequence

from ax.adapter.transfer_learning.adapter import TL_EXP, transfer_learning_generator_specs_constructor
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.auxiliary_source import AuxiliarySource
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy

from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Evaluated, Float, Int, Space
from rivals.problems import Problem, complete


class AxTransfer:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        self.space, self.index = problem.space, None
        self.client = study(self.space, "new task", [], seed)
        sources = [study(self.space, name, trials, seed) for name, trials in problem.past.items()]
        experiment = self.client._experiment
        experiment.auxiliary_experiments_by_purpose[TL_EXP] = [AuxiliarySource(one._experiment) for one in sources]
        specs, selector = transfer_learning_generator_specs_constructor()
        node = GenerationNode("BOTL", generator_specs=specs, best_model_selector=selector)
        self.client.set_generation_strategy(GenerationStrategy(nodes=[node]))

    def ask(self) -> Params:
        [(self.index, self.params)] = self.client.get_next_trials(1).items()
        return self.space.active_part(self.params)

    def tell(self, params: Params, value: float) -> None:
        whole, index = complete(self.space, params), self.index
        if index is None or whole != self.params:
            if index is not None:  # another row was evaluated
                self.client.mark_trial_abandoned(index)
            index = self.client.attach_trial(whole)
        self.client.complete_trial(index, {"value": value})


def study(space: Space, name: str, trials: Iterable[Evaluated], seed: int) -> Client:
    client = Client(random_seed=seed)
    client.configure_experiment([config(name, parameter) for name, parameter in space.items()], name=name)  # type: ignore[arg-type]
    client.configure_optimization("value")
    for trial in trials:
        client.complete_trial(client.attach_trial(complete(space, dict(trial.params))), {"value": trial.value})
    return client


def config(name: str, parameter: Float | Int | Categorical) -> RangeParameterConfig | ChoiceParameterConfig:
    if isinstance(parameter, Categorical):
        return ChoiceParameterConfig(name, list(parameter.choices), "str", is_ordered=False)
    kind, scaling = "int" if isinstance(parameter, Int) else "float", "log" if parameter.log else None
    return RangeParameterConfig(name, (parameter.low, parameter.high), kind, scaling=scaling)
