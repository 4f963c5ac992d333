"""Four workers tune one model, each in a process of its own; what they share is a journal file.

``python examples/optuna_workers.py [--journal study.log]``

Run it again with the same journal, on any machine that sees the file, and the study goes on.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_jax.tuning.optuna import DRESampler

WORKERS, TRIALS = 4, 6
X, Y = load_wine(return_X_y=True)


def accuracy(trial: optuna.Trial) -> float:
    """What is maximised."""
    C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    model = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
    return float(cross_val_score(model, X, Y, cv=5).mean())


def study_in(journal: str) -> optuna.Study:
    """The study, which the first to come creates; the same seed everywhere, for all suggestions differ anyhow."""
    space = {
        "C": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True),
        "gamma": optuna.distributions.FloatDistribution(1e-5, 10.0, log=True),
    }
    return optuna.create_study(
        study_name="wine",
        storage=JournalStorage(JournalFileBackend(journal)),
        sampler=DRESampler(search_space=space, seed=0),
        direction="maximize",
        load_if_exists=True,
    )


def work(journal: str) -> None:
    """A worker."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study_in(journal).optimize(accuracy, n_trials=TRIALS)


def main() -> None:
    """Starts the workers, and says what they have found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--journal", type=Path, help="by default a new file that is thrown away")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        journal = str(given.journal or Path(folder) / "study.log")
        study = study_in(journal)
        before = len(study.trials)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=work, args=(journal,)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        tried = {tuple(trial.params.values()) for trial in study.trials}
        print(f"{len(study.trials) - before} trials of {WORKERS} workers, {len(tried)} different configurations in all")
        print(f"accuracy {study.best_value:.3f} at {study.best_params}")


if __name__ == "__main__":
    main()
