"""Learning curves: stop a trial of a network once it is unlikely to become the best.

The past curves are the validation losses by epoch of random configurations of a network on three data sets. A study on
another data set learns from these curves how losses continue; its own curves overrule past curves that do not fit. The
study reports each trial's loss after every epoch, and ends the trial when ``should_stop`` returns True.

The script prints the number of trials and epochs. It draws the losses by epoch as ``learning_curves.png``: blue trials
ran to the end, the best trial is black, and stopped trials are orange and end with a cross.

``python examples/learning_curves.py [--out FOLDER] [--quick]``; needs ``'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gallery import options, run
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from dre_jax.tuning import Float, Int, Optimizer, PastCurves, Space, Trial

EPOCHS = 30
SPACE = Space({"lr": Float(1e-4, 0.1, log=True), "alpha": Float(1e-5, 1.0, log=True), "width": Int(8, 64, log=True)})


def losses(params: Mapping[str, Any], data: Any) -> Iterator[float]:
    """Yields the validation loss of a network after each epoch."""
    x, y = data
    x = StandardScaler().fit_transform(x)
    train, test, labels, test_labels = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)
    sizes = {"hidden_layer_sizes": (params["width"],), "batch_size": 50}
    network = MLPClassifier(learning_rate_init=params["lr"], alpha=params["alpha"], random_state=0, **sizes)
    for _ in range(EPOCHS):
        yield float(log_loss(test_labels, network.partial_fit(train, labels, classes=np.unique(y)).predict_proba(test)))


def past_curves(n: int) -> PastCurves:
    """Returns the curves of random configurations on three data sets."""
    rng = np.random.default_rng(0)
    past = {}
    for load in (datasets.load_wine, datasets.load_breast_cancer, datasets.load_iris):
        configurations = [SPACE.params(rng.random(len(SPACE))) for _ in range(n)]
        runs = [losses(params, load(return_X_y=True)) for params in configurations]
        past[load.__name__] = [{step: -loss for step, loss in enumerate(one, 1)} for one in runs]  # higher is better
    return PastCurves(past)


def main() -> None:
    """Runs the study, and draws its curves."""
    args = options(__doc__, "a shorter study").parse_args()
    warnings.simplefilter("ignore")
    data = datasets.load_digits(return_X_y=True)
    past = past_curves(5 if args.quick else 20)
    optimizer = Optimizer(SPACE, direction="minimize", seed=0, past_curves=past)

    def objective(trial: Trial) -> float:
        for epoch, loss in enumerate(losses(trial.params, data), start=1):
            trial.report(loss, epoch)
            if trial.should_stop():
                break
        return loss

    optimizer.optimize(objective, 8 if args.quick else 30)
    trials = optimizer.trials
    stopped = [trial for trial in trials if trial.state == "stopped"]
    epochs = sum(len(trial.reports) for trial in trials)
    print(f"{len(trials)} trials, of which {len(stopped)} were stopped")
    print(f"{epochs} of {len(trials) * EPOCHS} epochs, best loss {optimizer.best.value:.3f}")
    optimizer.figures()["Learning curves"].savefig(picture := args.out / "learning_curves.png", dpi=160)
    print(f"picture: {picture}")


if __name__ == "__main__":
    run(main)
