"""Tune a random forest with what 20 other data sets have taught.

The library carries cross-validation scores of random forests on 20 tasks made of breast cancer, digits and diabetes
data. Here a surrogate learns from them, and then tunes a forest on a data set that none of them comes from: the three
kinds of wine, told apart by four of their measurements. Optuna's TPE, which begins from nothing, tunes the same forest
with as many trials, and both do so from several seeds.

The script prints how long learning took and what the best forests of both are worth, in mean Brier scores of 5-fold
cross-validation (lower is better; always naming the classes' shares gives about 0.66), and draws the best score so far
against trials as ``random_forest.png``.

``python examples/random_forest.py [--out FOLDER] [--quick]``, with ``pip install 'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import time

import numpy as np
import optuna
from gallery import draw_best, options, run
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from dre_jax.data import bundled
from dre_jax.data.columns import read_descriptor
from dre_jax.tuning import Past, Surrogate
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.space.descriptors import from_descriptor

MINERALS = ["ash", "alcalinity_of_ash", "magnesium", "total_phenols"]
WINE = load_wine(as_frame=True)
X, Y = WINE.data[MINERALS].to_numpy(), WINE.target.to_numpy()


def brier(trial: optuna.Trial) -> float:
    """The loss to minimise: the mean squared error of the predicted probabilities, summed over classes."""
    options = {
        "n_estimators": trial.suggest_int("n_estimators", 3, 60, log=True),
        "max_depth": trial.suggest_int("max_depth", 1, 16),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 32, log=True),
        "max_features": trial.suggest_float("max_features", 0.05, 1.0),
        "bootstrap": trial.suggest_categorical("bootstrap", ["false", "true"]) == "true",
    }
    if options["bootstrap"]:
        options["max_samples"] = trial.suggest_float("max_samples", 0.2, 1.0)
    splits = trial.suggest_categorical("splitter", ["best", "random"])
    forest = (RandomForestClassifier if splits == "best" else ExtraTreesClassifier)(random_state=0, **options)
    predicted = cross_val_predict(forest, X, Y, cv=5, method="predict_proba")
    return float(((predicted - np.eye(3)[Y]) ** 2).sum(axis=1).mean())


def learn(quick: bool) -> Surrogate:
    """The surrogate: the recommended method, or one that learns in a second."""
    space = from_descriptor(read_descriptor(bundled.path(), "random-forest"))
    past = Past(space, bundled.load("random-forest").train)
    return Surrogate.fit(past, method="gcp" if quick else "recommended", seed=0)


def best_so_far(sampler: optuna.samplers.BaseSampler, trials: int) -> np.ndarray:
    """f64[trials]"""
    study = optuna.create_study(sampler=sampler)
    study.optimize(brier, n_trials=trials)
    return np.minimum.accumulate([trial.value for trial in study.trials])


def main() -> None:
    """Learns, tunes with both, and draws."""
    given = options(__doc__, "few trials, and a surrogate that learns in a second").parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seeds, trials = (2, 5) if given.quick else (3, 15)
    begun = time.monotonic()
    surrogate = learn(given.quick)
    print(f"learned from 20 past tasks in {time.monotonic() - begun:.0f} s")
    curves = {
        f"surrogate ({surrogate.name})": [
            best_so_far(DRESampler(surrogate=surrogate, seed=s), trials) for s in range(seeds)
        ],
        "TPE": [best_so_far(optuna.samplers.TPESampler(seed=s), trials) for s in range(seeds)],
    }
    curves = {name: np.array(found) for name, found in curves.items()}
    for name, found in curves.items():
        at = [f"{found[:, n - 1].mean():.3f} after {n}" for n in (1, 5, trials)]
        print(f"{name}: Brier score {', '.join(dict.fromkeys(at))} trials")
    draw_best(curves, given.out / "random_forest.png", "best Brier score so far (lower is better)")


if __name__ == "__main__":
    run(main)
