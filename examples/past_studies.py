"""Past Optuna studies of a model on other data sets become a surrogate, and the surrogate begins a new study well.

``python examples/past_studies.py [--storage sqlite:///studies.db] [--surrogate FOLDER]``

Without a storage, six small studies are made first.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from dre_jax.tuning import Surrogate, from_studies
from dre_jax.tuning.optuna import DRESampler, from_optuna

SPACE = from_optuna(
    {
        "C": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True),
        "gamma": optuna.distributions.FloatDistribution(1e-5, 10.0, log=True),
    }
)
PAST = {
    "iris": load_iris(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(n_class=4, return_X_y=True),
    "moons": make_moons(200, noise=0.3, random_state=0),
    "few": make_classification(150, 10, random_state=1),
    "noisy": make_classification(200, 20, flip_y=0.2, random_state=2),
}
NEW = load_wine(return_X_y=True)


def accuracy(trial: optuna.Trial, data: tuple[np.ndarray, np.ndarray]) -> float:
    """What is maximised."""
    C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    X, y = data
    scaled = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    return float(cross_val_score(SVC(C=C, gamma=gamma), scaled[:300], y[:300], cv=3).mean())


def make_past(storage: str) -> None:
    """Studies that somebody left behind: random searches."""
    for i, (name, data) in enumerate(PAST.items()):
        sampler = optuna.samplers.RandomSampler(seed=i)
        study = optuna.create_study(study_name=name, storage=storage, sampler=sampler, direction="maximize")
        study.optimize(lambda trial, data=data: accuracy(trial, data), n_trials=20)


def main() -> None:
    """Learns from the past, keeps what was learned, and searches with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", help="of past studies; by default six are made")
    parser.add_argument("--surrogate", help="where it is kept; by default it is thrown away")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        storage = given.storage or f"sqlite:///{folder}/studies.db"
        if given.storage is None:
            make_past(storage)
        past = from_studies(storage, SPACE)
        print(f"{len(past)} past studies", *past.left_out, sep="\n")
        # The Gaussian copula learns in a second; the default, method="recommended", is better and takes half a minute.
        Surrogate.fit(past, SPACE, method="gcp", seed=0).save(kept := given.surrogate or Path(folder) / "surrogate")
        for name, sampler in {
            "with the past": DRESampler(Surrogate.load(kept), seed=0),
            "by chance": optuna.samplers.RandomSampler(seed=0),
        }.items():
            study = optuna.create_study(sampler=sampler, direction="maximize")
            study.optimize(lambda trial: accuracy(trial, NEW), n_trials=8)
            best = np.maximum.accumulate([trial.value for trial in study.trials])
            print(f"{name}: best accuracy after each trial {np.round(best, 3).tolist()}")


if __name__ == "__main__":
    main()
