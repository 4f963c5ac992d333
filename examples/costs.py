"""Trials of different costs: more and deeper boosted trees take longer to fit.

If you report the cost of each trial, the tuner divides the expected improvement by the cost, and so tries cheap
configurations first. The cost here is the number of trees times their depth; the time of a fit is about proportional
to it. Seconds work as well.

The script searches until a total cost is spent, with three seeds, with and without costs. It prints the best error
after half of the cost and at the end, and draws the best error against the cost as ``costs.png``. Costs help if small
models are as good as large models, as on these noisy data.

``python examples/costs.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[sklearn]'``
"""

from __future__ import annotations

import numpy as np
from gallery import draw_best, options, run
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

from dre_jax.tuning import Float, Int, Optimizer, Space

SPACE = Space(
    {
        "n_estimators": Int(5, 500, log=True),
        "max_depth": Int(1, 8),
        "learning_rate": Float(0.005, 1.0, log=True),
        "subsample": Float(0.2, 1.0),
    }
)
DATA = make_friedman1(200, noise=3.0, random_state=0)
Curve = tuple[np.ndarray, np.ndarray]
"""Cost spent after each trial, and the best error so far."""


def error(params: dict) -> float:
    """Returns the value to minimise."""
    model = GradientBoostingRegressor(**params, random_state=0)
    return -float(cross_val_score(model, *DATA, cv=3, scoring="neg_root_mean_squared_error").mean())


def search(total: float, seed: int, *, tell_cost: bool) -> Curve:
    """Runs a search until the total cost is spent."""
    optimizer = Optimizer(SPACE, seed=seed)
    costs, errors = [0.0], []
    while costs[-1] < total:
        trial = optimizer.ask()
        cost = float(trial["n_estimators"] * trial["max_depth"])
        errors.append(error(trial.params))
        costs.append(costs[-1] + cost)
        optimizer.tell(trial, errors[-1], cost=cost if tell_cost else None)
    return np.array(costs[1:]), np.minimum.accumulate(errors)


def main() -> None:
    """Runs searches with and without costs, and draws both."""
    args = options(__doc__, "one seed, and a third of the cost").parse_args()
    total, seeds = (3000, 1) if args.quick else (9000, 3)
    grid = np.linspace(0.0, total, 200)
    by_search = {}
    for name, tell_cost in (("with costs", True), ("without costs", False)):
        curves = [search(total, seed, tell_cost=tell_cost) for seed in range(seeds)]
        # The best error of the trials that have ended by then; before the first trial has ended, its own error.
        best = np.array([errors[np.maximum(np.searchsorted(costs, grid, "right") - 1, 0)] for costs, errors in curves])
        by_search[name] = best
        trials = sum(len(costs) for costs, _ in curves) / seeds
        half, end = best[:, 99].mean(), best[:, -1].mean()
        print(f"{name}: {trials:.0f} trials, best error {half:.3f} at half of the cost, {end:.3f} at the end")
    labels = "cost spent (trees times depth)", "best root mean squared error so far"
    draw_best(grid, by_search, args.out / "costs.png", *labels)


if __name__ == "__main__":
    run(main)
