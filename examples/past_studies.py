"""A surrogate learns from 20 past Optuna studies of a model, and starts a new study.

If you tune the same model again and again, you have studies of other data sets. This example first makes 20 such
studies: random searches of a support vector machine on pairs of digits and on generated data sets. With ``--storage``,
it reads your studies instead. A surrogate learns from the studies, is saved in a folder, and makes suggestions in a new
study, which classifies three kinds of wine.

The script prints the number of past studies, and the five that agree most with the new study. It draws which past
studies helped as ``past_studies-sources.png``. It prints the best accuracy after each trial of the new study, with the
surrogate and with Optuna's TPE (means over several seeds), and draws both as ``past_studies.png``.

``python examples/past_studies.py [--storage sqlite:///studies.db] [--surrogate FOLDER] [--out FOLDER] [--quick]``, with
``pip install 'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import optuna
from gallery import draw_best, options, run
from sklearn.datasets import load_digits, load_wine, make_classification, make_moons
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
Data = tuple[np.ndarray, np.ndarray]
NEW = load_wine(return_X_y=True)


def past_data() -> Iterator[tuple[str, Data]]:
    """Yields 20 data sets with two classes."""
    X, y = load_digits(return_X_y=True)
    for one, other in list(combinations(range(10), 2))[::4][:10]:
        rows = np.flatnonzero((y == one) | (y == other))[:150]
        yield f"{one} or {other}", (X[rows], y[rows])
    for seed in range(5):
        yield f"moons {seed}", make_moons(150, noise=0.1 + 0.1 * seed, random_state=seed)
        yield f"drawn {seed}", make_classification(150, 5 + 5 * seed, flip_y=0.05 * seed, random_state=seed)


def accuracy(trial: optuna.Trial, data: Data) -> float:
    """Returns the score to maximise."""
    C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    X, y = data
    scaled = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    return float(cross_val_score(SVC(C=C, gamma=gamma), scaled, y, cv=3).mean())


def make_past(storage: optuna.storages.BaseStorage) -> None:
    """Makes the past studies."""
    for i, (name, data) in enumerate(past_data()):
        sampler = optuna.samplers.RandomSampler(seed=i)
        study = optuna.create_study(study_name=name, storage=storage, sampler=sampler, direction="maximize")
        study.optimize(lambda trial, data=data: accuracy(trial, data), n_trials=20)


def new_study(sampler: optuna.samplers.BaseSampler, trials: int) -> list[optuna.trial.FrozenTrial]:
    """Returns the trials of the new study."""
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(lambda trial: accuracy(trial, NEW), n_trials=trials)
    return study.trials


def best_so_far(studies: Iterable[list[optuna.trial.FrozenTrial]]) -> np.ndarray:
    """Returns the best values so far, f64[studies, trials]."""
    return np.array([np.maximum.accumulate([trial.value for trial in trials]) for trials in studies])


def main() -> None:
    """Fits a surrogate to the past studies, saves it, and runs new studies with it."""
    parser = options(__doc__, "a surrogate that learns in a second, one seed, five trials")
    parser.add_argument("--storage", help="storage of past studies; by default, the example makes 20")
    parser.add_argument("--surrogate", help="folder of the surrogate; by default, a temporary folder")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    seeds, trials = (range(1), 5) if args.quick else (range(5), 15)
    with tempfile.TemporaryDirectory() as folder:
        storage = args.storage or f"{folder}/studies.log"
        if args.storage is None:
            make_past(optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(storage)))
        past = from_studies(storage, SPACE)
        print(f"{len(past)} past studies", *past.exclusions, sep="\n")
        surrogate = Surrogate.fit(past, method="gcp" if args.quick else "recommended", seed=0)
        surrogate.save(saved := args.surrogate or Path(folder) / "surrogate")
        surrogate = Surrogate.load(saved)
        with_past = [new_study(DRESampler(surrogate=surrogate, seed=s), trials) for s in seeds]
        without = [new_study(optuna.samplers.TPESampler(seed=s), trials) for s in seeds]
    sources = surrogate.sources(with_past[0])
    print(*sources.lines(most=5), sep="\n")
    sources.plot(args.out / "past_studies-sources.png")
    curves = {f"with the past ({surrogate.name})": best_so_far(with_past), "TPE": best_so_far(without)}
    for name, best in curves.items():
        print(f"{name}: best accuracy after each trial {np.round(best.mean(axis=0), 3).tolist()}")
    picture, label = args.out / "past_studies.png", "best accuracy so far (higher is better)"
    draw_best(np.arange(1, trials + 1), curves, picture, "trials", label)


if __name__ == "__main__":
    run(main)
