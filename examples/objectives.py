"""Two objectives: the error of boosted trees and their size.

Boosted trees predict better with more trees, up to a point, and are smaller with fewer. No single configuration is the
best. The front has the configurations that no other configuration beats in both objectives. The optimizer suggests 40
configurations, and random search draws 40. The script prints the hypervolumes of both fronts, and draws all trials as
``objectives.png``.

``python examples/objectives.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[sklearn]'``
"""

from __future__ import annotations

import numpy as np
from gallery import options, run
from sklearn.datasets import make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_validate

from dre_jax.report.style import COLOURS, new_figure
from dre_jax.suggest.hypervolume import hypervolume
from dre_jax.tuning import Float, Int, Optimizer, Space

SPACE = Space(
    {
        "n_estimators": Int(2, 256, log=True),
        "learning_rate": Float(0.005, 1.0, log=True),
        "max_depth": Int(1, 8),
        "subsample": Float(0.2, 1.0),
        "min_samples_leaf": Int(1, 50, log=True),
    }
)
REFERENCE = np.array([5.0, 4.5])
"""The reference point of hypervolumes: error and size."""


def evaluate(params: dict) -> dict[str, float]:
    """Returns the root mean squared error over three folds, and the decimal logarithm of the number of tree nodes."""
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    model = GradientBoostingRegressor(**params, random_state=0)
    scores = cross_validate(model, X, y, cv=3, scoring="neg_root_mean_squared_error", return_estimator=True)
    nodes = [sum(tree.tree_.node_count for tree in boosted.estimators_.flat) for boosted in scores["estimator"]]
    return {"error": -float(scores["test_score"].mean()), "size": float(np.log10(np.mean(nodes)))}


def main() -> None:
    """Runs both searches, and draws their fronts."""
    arguments = options(__doc__, "12 trials in place of 40").parse_args()
    n = 12 if arguments.quick else 40
    directions = {"error": "minimize", "size": "minimize"}
    searches = {name: Optimizer(SPACE, directions=directions, seed=1) for name in ("optimizer", "random search")}
    searches["optimizer"].optimize(lambda trial: evaluate(trial.params), n)
    for point in np.random.default_rng(0).uniform(size=(n, len(SPACE))):
        params = SPACE.params(point)
        searches["random search"].add(params, evaluate(params))
    points = {
        name: np.array([[trial.values["error"], trial.values["size"]] for trial in search.trials])
        for name, search in searches.items()
    }
    for name, search in searches.items():
        volume = hypervolume(-points[name], -REFERENCE) / REFERENCE.prod()
        print(f"{name}: {len(search.front)} of {n} trials are in the front, hypervolume {volume:.3f}")

    path = arguments.out / "objectives.png"
    with new_figure((6.4, 4.2), path) as figure:
        axes = figure.subplots()
        for (name, search), colour in zip(searches.items(), COLOURS, strict=False):
            front = np.array(sorted((10 ** trial.values["size"], trial.values["error"]) for trial in search.front))
            axes.plot(10 ** points[name][:, 1], points[name][:, 0], ".", color=colour, alpha=0.35, markersize=7)
            axes.step(*front.T, where="post", color=colour, linewidth=1.5)
            axes.plot(*front.T, "o", color=colour, markersize=6, label=f"{name}: front")
        axes.set(xscale="log", xlabel="nodes of all trees", ylabel="root mean squared error", ylim=(0.0, 5.5))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    print(f"picture: {path}")


if __name__ == "__main__":
    run(main)
