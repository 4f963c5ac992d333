"""Regret by the cost that is spent, on live functions: without costs, with those of trials, and of past studies too.

    python scripts/compare_costs.py [--seeds 6] [--families hartmann-3 rosenbrock-4 levy-6]

The logarithm of a cost is linear in the configuration, with a standard deviation of 1 over random ones. Its slopes are
a family's, up to a tenth, and each task has a level of its own. The past is 3 studies of 20 random trials.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from live.functions import FAMILIES, Family, Floats
from markdown_tables import markdown_table, mean_cell

from dre_jax.tuning import Evaluated, Optimizer, Surrogate, past_of

AT = (2, 5, 10, 20)
TUNERS = ("none", "of the trials", "of the trials and of past studies")


def draw_cost(slopes: Floats, random: np.random.Generator) -> Callable[[Floats], float]:
    """The cost of a point, about 1 on average."""
    own = slopes + 0.1 * np.linalg.norm(slopes) * random.normal(size=len(slopes)) / len(slopes) ** 0.5
    own *= 12**0.5 / np.linalg.norm(own)
    return lambda point: float(np.exp((point - 0.5) @ own - 0.5 + 0.1 * random.normal()))


def run(family: Family, seed: int) -> list[list[float]]:
    """Regrets of each tuner after each cost, 1 at the median random point."""
    random = np.random.default_rng(seed)
    slopes = random.normal(size=family.n_columns)
    past: dict[str, list[Evaluated]] = {}
    for study in range(3):
        task, cost, level = family.draw(random, past=True), draw_cost(slopes, random), 10.0 ** random.normal()
        points = random.random((20, family.n_columns))
        rows = [(family.space.params(point), level * cost(point)) for point in points]
        past[str(study)] = [Evaluated(params, task.evaluate(params, random), seconds) for params, seconds in rows]
    with_costs = Surrogate.fit(past_of(family.space, past, direction="minimize"), seed=seed, quiet=True)
    assert with_costs.studies is not None
    without = replace(with_costs, studies=with_costs.studies._replace(costs=None))
    task, cost = family.draw(random), draw_cost(slopes, random)

    def search(tuner: str) -> list[float]:
        optimizer = Optimizer(surrogate=with_costs if tuner == TUNERS[2] else without, seed=seed)
        spent, regrets = 0.0, [(0.0, 1.0)]
        while spent < AT[-1]:
            trial = optimizer.ask()
            seconds = cost(family.space.point(trial.params))
            optimizer.tell(trial, task.evaluate(trial.params, random), cost=None if tuner == "none" else seconds)
            spent += seconds
            regrets.append((spent, min(regrets[-1][1], task.regret(task.exact(trial.params)))))
        return [min(regret for at, regret in regrets if at <= limit) for limit in AT]

    return [search(tuner) for tuner in TUNERS]


def main() -> None:
    """Prints the means over studies, with standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=["hartmann-3", "rosenbrock-4", "levy-6"])
    args = parser.parse_args()
    regrets = np.array([run(FAMILIES[name], seed) for name in args.families for seed in range(args.seeds)])
    rows = [[tuner, *map(mean_cell, regrets[:, i].T)] for i, tuner in enumerate(TUNERS)]
    print(markdown_table(["costs that the tuner knows", *(f"after a cost of {at}" for at in AT)], rows))
    print("Gain by costs of past studies:", ", ".join(map(mean_cell, (regrets[:, 1] - regrets[:, 2]).T)))


if __name__ == "__main__":
    main()
