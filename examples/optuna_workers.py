"""Four workers tune one model, each in its own process; they share a journal file.

Every worker reads all trials of Optuna's study from the journal, including running trials of the other workers, and
writes its own trials to the journal. All workers have the same seed, and no two workers try the same configuration. The
model is a support vector machine that classifies three kinds of wine.

The script prints the number of configurations and the best configuration. It draws all configurations as
``optuna_workers.png``: markers show the worker, and colours show the accuracy of 5-fold cross-validation. To resume the
study, run the script again with the same ``--journal``, on any machine that can read the file.

``python examples/optuna_workers.py [--journal study.log] [--out FOLDER] [--quick]``, with ``pip install
'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import contextlib
import multiprocessing
import tempfile
from pathlib import Path

import optuna
from gallery import options, run
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_jax.report.style import new_figure
from dre_jax.tuning.optuna import DRESampler

X, Y = load_wine(return_X_y=True)
SPACE = {
    "C": optuna.distributions.FloatDistribution(1e-3, 1e3, log=True),
    "gamma": optuna.distributions.FloatDistribution(1e-5, 10.0, log=True),
}
MARKERS = ("o", "s", "^", "D")


def accuracy(trial: optuna.Trial) -> float:
    """Returns the score to maximise."""
    C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    model = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
    return float(cross_val_score(model, X, Y, cv=5).mean())


def study_in(journal: str) -> optuna.Study:
    """Returns the study; the first process creates it."""
    return optuna.create_study(
        study_name="wine",
        storage=JournalStorage(JournalFileBackend(journal)),
        sampler=DRESampler(search_space=SPACE, seed=0),
        direction="maximize",
        load_if_exists=True,
    )


def work(journal: str, worker: int, trials: int) -> None:
    """Runs the trials of a worker, which have the worker's number as an attribute."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def numbered(trial: optuna.Trial) -> float:
        trial.set_user_attr("worker", worker)
        return accuracy(trial)

    with contextlib.suppress(KeyboardInterrupt):  # it ends all workers, and the first process reports it
        study_in(journal).optimize(numbered, n_trials=trials)


def draw(trials: list[optuna.trial.FrozenTrial], path: Path) -> None:
    """Draws every trial in the plane of C and gamma."""
    with new_figure((6.4, 4.2), path) as figure:
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel="C", ylabel="gamma")
        best = max(trial.value for trial in trials)
        for worker, marker in enumerate(MARKERS):
            mine = [trial for trial in trials if trial.user_attrs["worker"] == worker]
            at = [[trial.params[name] for trial in mine] for name in ("C", "gamma")]
            values = [trial.value for trial in mine]
            label = f"worker {worker + 1}"
            points = axes.scatter(*at, c=values, marker=marker, s=52, vmin=best - 0.1, vmax=best, label=label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        figure.colorbar(points, ax=axes, label="cross-validated accuracy", extend="min")
        figure.legend(loc="outside upper center", ncols=4, frameon=False)
    print(f"picture: {path}")


def main() -> None:
    """Starts the workers, prints the best trial, and draws all trials."""
    parser = options(__doc__, "two workers, three trials each")
    parser.add_argument("--journal", type=Path, help="journal file; by default, a temporary file")
    args = parser.parse_args()
    count, trials = (2, 3) if args.quick else (4, 8)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        journal = str(args.journal or Path(folder) / "study.log")
        study = study_in(journal)
        before = len(study.trials)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=work, args=(journal, i, trials), daemon=True) for i in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        unique = {tuple(trial.params.values()) for trial in study.trials}
        print(f"{len(study.trials) - before} trials of {count} workers, {len(unique)} different configurations in all")
        print(f"accuracy {study.best_value:.3f} at {study.best_params}")
        draw(study.get_trials(states=[optuna.trial.TrialState.COMPLETE]), args.out / "optuna_workers.png")


if __name__ == "__main__":
    run(main)
