"""dre_jax: the recommended tuner, with the past or without one."""

from collections.abc import Sequence
from functools import lru_cache

from dre_jax.space.space import Params
from dre_jax.tuning import Allowed, Optimizer, Space, Surrogate, past_of
from rivals.problems import Problem


@lru_cache(maxsize=1)
def learn(problem: Problem, method: str) -> Surrogate:
    return Surrogate.fit(past_of(problem.space, problem.past, direction="maximize"), method=method, quiet=True)


class DreJax:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int, *, method: str | None) -> None:
        space = Space(problem.space, rules=[] if rows is None else [Allowed(rows)])
        surrogate = None if method is None else learn(problem, method)
        self.optimizer = Optimizer(space, surrogate, direction="maximize", seed=seed)

    def ask(self) -> Params:
        return self.optimizer.ask().params

    def tell(self, params: Params, value: float) -> None:
        running = [trial for trial in self.optimizer.trials if trial.state == "running" and trial.params == params]
        if running:
            self.optimizer.tell(running[0], value)
        else:
            self.optimizer.add(params, value)
