"""Compares pruners on learning curves of scikit-learn's models; docs/results/curves.md has the results.

    python scripts/compare_curves.py TABLES [--seeds 3] [--epochs 2000] [--sampler tpe] [--pruners none DREPruner]

The curves, 150 configurations of a model on a data set over 50 epochs or stages, are in files in TABLES, which the
first run writes in some 15 minutes. A study replays the curve of the configuration nearest to the sampler's until it
has used its epochs. The past of a study is 60 curves of the same model on each data set of another origin.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from study import errors_in_one_line, markdown_table, mean_cell

from dre_jax.data.files import read_json, write_json
from dre_jax.tuning import Float, PastCurves, Space
from dre_jax.tuning.optuna import DREPruner, DRESampler

N_CONFIGURATIONS, N_STEPS = 150, 50
MODELS: dict[str, dict[str, tuple[float, float, bool]]] = {  # low, high, log
    "mlp": {
        "learning_rate": (1e-4, 1e-1, True),
        "alpha": (1e-6, 1.0, True),
        "batch_size": (16, 256, True),
        "width": (8, 128, True),
    },
    "boosting": {
        "learning_rate": (0.01, 1.0, True),
        "max_depth": (1, 6, False),
        "subsample": (0.3, 1.0, False),
        "max_features": (0.1, 1.0, True),
    },
}
PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "none": optuna.pruners.NopPruner,
    "Median": optuna.pruners.MedianPruner,
    "Hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=N_STEPS),
}
PASTS = {"DREPruner": "", "DREPruner, past": "same", "DREPruner, other past": "other", "DREPruner, negated": "negated"}
SAMPLERS: dict[str, Callable[..., optuna.samplers.BaseSampler]] = {
    "tpe": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
    "dre": partial(DRESampler, Space({f"x{i}": Float(0.0, 1.0) for i in range(4)})),
}
DATASETS = ("digits", "even digits", "high digits", "cancer", "wine", "iris", "diabetes", "hastie", "moons")
Task = tuple[str, str]
Table = tuple[np.ndarray, np.ndarray]
"""Points f64[n, P] of the unit cube, and their curves f64[n, steps]."""


def _dataset(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    if name == "hastie":
        return datasets.make_hastie_10_2(1500, random_state=0)
    if name == "moons":
        return datasets.make_moons(1000, noise=0.3, random_state=0)
    load = getattr(datasets, f"load_{_origin(name).replace('cancer', 'breast_cancer')}")
    x, y = load(return_X_y=True)
    labels = {"even digits": y % 2, "high digits": y >= 5, "diabetes": y > np.median(y)}
    return x, labels.get(name, y)


def _curve(model: str, params: Mapping[str, Any], data: Sequence[Any]) -> list[float]:
    """Returns the validation loss after each epoch or stage."""
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.metrics import log_loss
    from sklearn.neural_network import MLPClassifier

    train, test, train_labels, test_labels = data
    labels = np.unique(train_labels)
    if model == "mlp":
        mlp = MLPClassifier(
            learning_rate_init=params["learning_rate"],
            alpha=params["alpha"],
            batch_size=min(round(params["batch_size"]), len(train)),
            hidden_layer_sizes=(round(params["width"]),),
            random_state=0,
        )
        predictions = (mlp.partial_fit(train, train_labels, classes=labels).predict_proba(test) for _ in range(N_STEPS))
    else:
        depth = round(params["max_depth"])
        boosting = GradientBoostingClassifier(n_estimators=N_STEPS, random_state=0, **{**params, "max_depth": depth})
        predictions = boosting.fit(train, train_labels).staged_predict_proba(test)
    shares = (np.nan_to_num(one, nan=1.0 / len(labels)) for one in predictions)
    return [float(log_loss(test_labels, one, labels=labels)) for one in shares]


def make_tables(folder: Path) -> dict[Task, Table]:
    """Returns the curves of random configurations by model and data set; those that no file has are made."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    tables = {}
    for model, name in itertools.product(MODELS, DATASETS):
        if (model, name) == ("boosting", "digits"):  # ten trees a stage
            continue
        path = folder / f"{model} {name}.json"
        if not path.exists():
            x, y = _dataset(name)
            data = train_test_split(StandardScaler().fit_transform(x), y, test_size=0.33, random_state=0, stratify=y)
            unit = np.random.default_rng(0).random((N_CONFIGURATIONS, len(MODELS[model])))
            curves = [_curve(model, _from_unit(model, row), data) for row in unit]
            write_json(path, {"unit": unit.tolist(), "curves": curves})
            print(path, flush=True)
        content = read_json(path)
        tables[model, name] = np.array(content["unit"]), np.array(content["curves"])
    return tables


def _from_unit(model: str, row: Sequence[float]) -> dict[str, float]:
    """Returns a configuration of a point in the unit cube."""
    return {
        name: float(low * (high / low) ** u if log else low + u * (high - low))
        for (name, (low, high, log)), u in zip(MODELS[model].items(), row, strict=True)
    }


class Outcome(NamedTuple):
    """A study."""

    best: np.ndarray
    """f64[epochs]: the best complete value so far, as regret: 0 is the table's best value, 1 its median."""
    lost: bool
    """Whether a pruned trial would have become the best."""
    trials: int


def past_curves(tables: Mapping[Task, Table], task: Task, kind: str) -> PastCurves:
    """Returns learning curves of the other data sets: of the same model, of the other one, or negated."""
    other = next(model for model in MODELS if model != task[0])
    model, sign = other if kind == "other" else task[0], 1.0 if kind == "negated" else -1.0
    return PastCurves(
        {
            f"{model} {name}": [dict(enumerate((sign * curve).tolist(), 1)) for curve in curves[:60]]
            for (model_of, name), (_, curves) in tables.items()
            if model_of == model and _origin(name) != _origin(task[1])
        }
    )


def _origin(name: str) -> str:
    return name.split()[-1]


def run_study(table: Table, pruner: optuna.pruners.BasePruner, sampler: str, seed: int, epochs: int) -> Outcome:
    """Runs a study until its epochs are used; the last trial is completed only if they suffice."""
    unit, curves = table
    # Hyperband's brackets depend on the name.
    study = optuna.create_study(study_name="study", sampler=SAMPLERS[sampler](seed=seed), pruner=pruner)
    regrets = (curves[:, -1] - curves[:, -1].min()) / (np.median(curves[:, -1]) - curves[:, -1].min())
    best, used, best_pruned = np.full(epochs, np.nan), 0, np.inf
    while used < epochs:
        trial = study.ask()
        x = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(unit.shape[1])]
        row = int(np.argmin(((unit - x) ** 2).sum(1)))
        is_pruned = False
        for step in range(N_STEPS):
            used += 1
            trial.report(curves[row, step], step + 1)
            if used >= epochs or (step < N_STEPS - 1 and trial.should_prune()):
                is_pruned = step < N_STEPS - 1
                break
        if is_pruned and used < epochs:
            best_pruned = min(best_pruned, regrets[row])
        study.tell(trial, state=optuna.trial.TrialState.PRUNED) if is_pruned else study.tell(trial, curves[row, -1])
        if not is_pruned:
            best[used - 1] = regrets[row]
    best = np.fmin.accumulate(best)
    return Outcome(best, bool(best_pruned < best[-1]), len(study.trials))


def _share(regrets: np.ndarray, finals: np.ndarray) -> float:
    """Returns the percentage of epochs until the mean regret, of f64[n, epochs], is that of the finals f64[n]."""
    reached = np.flatnonzero(regrets.mean(axis=0) <= finals.mean() + 1e-12)
    return float(100 * (reached[0] + 1) / regrets.shape[1]) if len(reached) else np.inf


def print_table(outcomes: Mapping[str, Sequence[Outcome]], epochs: int) -> None:
    """Prints a row for each pruner: regrets, epochs to the final value without a pruner, lost optima.

    Behind the epochs are their 5th and 95th percentiles in a bootstrap over studies.
    """
    at = [epochs // 8, epochs // 4, epochs // 2, epochs]
    heads = ["pruner", *(f"regret at {n}" for n in at), "epochs to the same value", "lost optima", "trials"]
    cells_by_pruner = []
    for name, runs in outcomes.items():
        regrets = np.nan_to_num([run.best for run in runs], nan=1.0)
        finals = np.array([run.best[-1] for run in outcomes["none"]])
        drawn = np.random.default_rng(0).integers(len(runs), size=(1000, len(runs)))
        low, high = np.quantile([_share(regrets[rows], finals[rows]) for rows in drawn], (0.05, 0.95), method="nearest")
        share = " to ".join(f"{one:.0f} %" if np.isfinite(one) else "not reached" for one in (low, high))
        share = f"{_share(regrets, finals):.0f} % ({share})".replace("inf %", "not reached")
        lost, trials = np.mean([run.lost for run in runs]), np.mean([run.trials for run in runs])
        cells = [mean_cell(regrets[:, n - 1]) for n in at]
        cells_by_pruner.append([name, *cells, share, f"{100 * lost:.1f} % of {len(runs)}", f"{trials:.0f}"])
    print(f"\n{markdown_table(heads, cells_by_pruner)}", flush=True)


def main() -> None:
    """Makes the tables that are missing, runs the studies and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--error", type=float, default=0.05, help="of DREPruner")
    parser.add_argument("--epochs", type=int, default=2000)
    parser.add_argument("--sampler", choices=SAMPLERS, default="tpe")
    parser.add_argument("--pruners", nargs="+", choices=[*PRUNERS, *PASTS], default=[*PRUNERS, *PASTS])
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    tables = make_tables(args.tables)
    outcomes: dict[str, list[Outcome]] = {}
    for name in args.pruners:
        outcomes[name] = []
        for task, table in tables.items():
            past = past_curves(tables, task, PASTS[name]) if PASTS.get(name) else None
            for seed in range(args.seeds):
                pruner = PRUNERS[name]() if name in PRUNERS else DREPruner(past, error=args.error)
                outcomes[name].append(run_study(table, pruner, args.sampler, seed, args.epochs))
        print_table({"none": outcomes["none"], name: outcomes[name]}, args.epochs)
    print_table(outcomes, args.epochs)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
