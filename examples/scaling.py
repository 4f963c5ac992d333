"""From small data to large: the best regularisation of a linear model, by the number of rows.

Five studies with 50 to 800 rows are the past, of twenty random trials each. The rows are a feature of their tasks, so
that the surrogate learns how the best ``alpha`` falls with them; in theory, by half a decade per decade. The study with
6400 rows then starts where the trend points to. Without the feature, it starts with what was best on average.

The script prints the slopes, and the losses of the first trials with and without the feature. It draws the trends as
``scaling.png``: a point is a past study, and the dashed line is the new one.

``python examples/scaling.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[sklearn]'``
"""

from __future__ import annotations

import numpy as np
from gallery import options, run
from sklearn.linear_model import ElasticNet

from dre_jax.tuning import EngineConfig, Float, Optimizer, Space, Surrogate, past_of

SPACE = Space({"alpha": Float(1e-3, 10.0, log=True), "l1_ratio": Float(0.1, 1.0)})
PAST, NEW = (50, 100, 200, 400, 800), 6400
"""Rows of the data."""


def loss(rows: int, alpha: float, l1_ratio: float) -> float:
    """Returns the value to minimise: the mean squared distance from the true responses, on new data."""
    rng = np.random.default_rng(rows)
    coefficients = np.r_[np.ones(5), np.zeros(95)]
    x, new = rng.normal(size=(rows, 100)), rng.normal(size=(2000, 100))
    y = x @ coefficients + 3.0 * rng.normal(size=rows)
    model = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-2).fit(x, y)
    return float(np.mean((model.predict(new) - new @ coefficients) ** 2))


def search(optimizer: Optimizer, rows: int, trials: int) -> list[float]:
    """Returns the losses of trials."""
    optimizer.optimize(lambda trial: loss(rows, **trial.params), trials)
    return [trial.value for trial in optimizer.trials]


def main() -> None:
    """Runs the past studies, and the new one with and without its feature."""
    args = options(__doc__, "three past studies, and two trials of the new one").parse_args()
    studies = {}
    for rows in PAST[:3] if args.quick else PAST:
        random_search = EngineConfig(method="random")
        studies[f"{rows} rows"] = Optimizer(SPACE, seed=rows, config=random_search, features={"rows": rows})
        search(studies[f"{rows} rows"], rows, 20)
    surrogate = Surrogate.fit(past_of(SPACE, studies, direction="minimize"))
    print(surrogate.scaling)
    for name, rows in (("with the feature", NEW), ("without it", None)):
        optimizer = Optimizer(SPACE, surrogate, direction="minimize", seed=0, features={"rows": rows})
        losses = search(optimizer, NEW, 2 if args.quick else 5)
        print(f"{name}: losses {', '.join(f'{value:.3f}' for value in losses)}")
        if rows is not None:
            optimizer.surrogate.figures()["Scaling"].savefig(args.out / "scaling.png", dpi=160)
    print(f"picture: {args.out / 'scaling.png'}")


if __name__ == "__main__":
    run(main)
