"""Predictions of a tuner: the error rate along a hyperparameter, after two trials and after eight.

A shipped surrogate has learned how support vector machines perform on other data sets; every trial corrects it. The
data set of this example is generated. ``optimizer.predict`` returns the expected error rate of any configuration, and
its standard deviation. The example varies ``C``; all other hyperparameters are those of the best trial.

The script prints the best trial, and the mean distance between the predictions and the error rates of the same
configurations by cross-validation. It draws both as ``beliefs.png``.

``python examples/beliefs.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[sklearn]'``
"""

from __future__ import annotations

import numpy as np
from gallery import options, run
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from dre_jax.report.style import COLOURS, new_figure
from dre_jax.tuning import Optimizer, Surrogate

DATA = make_classification(250, 8, n_informative=5, flip_y=0.1, random_state=3)
AFTER = (2, 8)
"""Numbers of trials."""


def error(params: dict) -> float:
    """Returns the value to minimise."""
    return 1.0 - float(cross_val_score(SVC(**params), *DATA, cv=5).mean())


def main() -> None:
    """Runs a search, and predicts error rates along C."""
    args = options(__doc__, "few values of C").parse_args()
    costs = np.geomspace(0.01, 1000.0, 9 if args.quick else 33)
    optimizer = Optimizer(surrogate=Surrogate.pretrained("svc"), direction="minimize", seed=0)
    expected = []
    for n in AFTER:
        optimizer.optimize(lambda trial: error(trial.params), n - len(optimizer.trials))
        line = [{**optimizer.best.params, "C": float(C)} for C in costs]
        truth = np.array([error(params) for params in line])
        expected.append((optimizer.predict(line, noise=False), truth))
    print(f"best of {n} trials: error rate {optimizer.best.value:.3f} at {optimizer.best.params}")
    for n, (prediction, truth) in zip(AFTER, expected, strict=True):
        inside = np.abs(prediction.mean - truth) <= 2 * prediction.deviation
        distance = np.abs(prediction.mean - truth).mean()
        print(
            f"after {n} trials: mean distance from the truth {distance:.3f}, {inside.mean():.0%} within two deviations"
        )
    with new_figure((7.6, 3.6), args.out / "beliefs.png") as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, n, ((mean, deviation), truth) in zip(panels, AFTER, expected, strict=True):
            axes.fill_between(costs, mean - 2 * deviation, mean + 2 * deviation, color=COLOURS[0], alpha=0.2)
            axes.plot(costs, mean, color=COLOURS[0], label="expected, ± two standard deviations")
            axes.plot(costs, truth, ":", color="black", label="true")
            axes.set(xscale="log", xlabel="C", title=f"after {n} trials")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("error rate")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    print(f"picture: {args.out / 'beliefs.png'}")


if __name__ == "__main__":
    run(main)
