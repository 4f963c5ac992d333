"""Four workers tune one model, each in a process of its own; what they share is a journal file.

Every worker asks Optuna's study what has been tried, running trials of the others among it, and tells it what it found.
All have the same seed, and no two try the same. The model is a support vector machine that tells three kinds of wine
apart.

The script prints how many configurations were tried and the best of them, and draws them all as
``optuna_workers.png``, a marker for each worker, colours for the accuracy of 5-fold cross-validation. Run it again with
the same ``--journal``, on any machine that sees the file, and the study resumes.

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
    """The score to maximise."""
    C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    model = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
    return float(cross_val_score(model, X, Y, cv=5).mean())


def study_in(journal: str) -> optuna.Study:
    """The study, which the first to come creates."""
    return optuna.create_study(
        study_name="wine",
        storage=JournalStorage(JournalFileBackend(journal)),
        sampler=DRESampler(search_space=SPACE, seed=0),
        direction="maximize",
        load_if_exists=True,
    )


def work(journal: str, worker: int, trials: int) -> None:
    """A worker; its trials have its number."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def numbered(trial: optuna.Trial) -> float:
        trial.set_user_attr("worker", worker)
        return accuracy(trial)

    with contextlib.suppress(KeyboardInterrupt):  # which ends all of them, and the first process says so
        study_in(journal).optimize(numbered, n_trials=trials)


def draw(trials: list[optuna.trial.FrozenTrial], path: Path) -> None:
    """Every trial in the plane of C and gamma."""
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
    """Starts the workers, says what they have found, and draws it."""
    parser = options(__doc__, "two workers, three trials each")
    parser.add_argument("--journal", type=Path, help="by default a new file that is thrown away")
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
