"""Random search."""

from collections.abc import Sequence

import numpy as np

from dre_jax.space.space import Params
from rivals.live_tasks import random_params
from rivals.problems import Problem


class RandomSearch:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        self.space, self.rows, self.random = problem.space, rows, np.random.default_rng(seed)

    def ask(self) -> Params:
        if self.rows is not None:
            return self.rows[int(self.random.integers(len(self.rows)))]
        return random_params(self.space, 1, self.random)[0]

    def tell(self, params: Params, value: float) -> None:
        pass
