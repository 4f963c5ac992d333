"""Tuners on live models, with surrogates that know nothing of the data set: leave one data set out.

    python scripts/compare_pretrained.py --tables DIR --out pretrained.jsonl [--family svc] [--seeds 3]
    python scripts/compare_pretrained.py --out pretrained.jsonl --report

An objective is a model, a data set and a metric, by three-fold cross-validation. DIR holds the tables of
`make_pretrained.py`; the surrogate of an objective learns from all tasks but those from its data set. Finished studies
are in the file, one line each: rerun the command to resume. `halving` is scikit-learn's successive halving on rows, of
as many candidates as cost 25 fits; `random` is what RandomizedSearchCV draws.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bundled.generated import source_of
from bundled.pretrained import HIGHER_IS_BETTER, first_suggestions, fit, metrics_of, model, tasks_of
from bundled.scoring import parts_of
from bundled.spaces import stream
from bundled.tasks import Problem
from live.contestants import optuna_study
from live.pretrained_tables import first_table, report
from study import append_study, errors_in_one_line, read_studies
from threadpoolctl import threadpool_limits

from dre_jax.tuning import Optimizer, Surrogate
from dre_jax.tuning.pretrained import FAMILIES, Family
from dre_jax.tuning.pretrained.families import CLASS_METRICS, NUMBER_METRICS

PROBLEMS = (
    *("iris-whole", "wine-whole", "cancer-whole", "digits-whole", "diabetes-whole-high"),
    *("classification-dense", "moons", "quantiles", "hastie"),
    *("diabetes-whole", "cancer-worst-texture", "wine-proline", "iris-sepal-width", "digits-8-ink-r47-c07-from-r03"),
    *("friedman1", "regression-dense", "uncorrelated"),
)
"""One of each data set and generator, with classes and with numbers."""
TUNERS = ("pretrained", "gp", "tpe", "random", "halving")
SCORING = {"error": "accuracy", "r2": "r2"}
"""Metrics that halving runs on, by scikit-learn's names."""
CANDIDATES, FACTOR = 75, 3
"""Of halving: three rounds on a ninth, a third and all of the rows cost 25 fits."""
FAILED = 10.0
"""Loss of a configuration whose fit fails."""


class Study(NamedTuple):
    """One tuner on one objective."""

    tuner: str
    """One of `TUNERS`, or "default"."""
    family: str
    problem: str
    metric: str
    seed: int


class Objective:
    """The loss of configurations of a family on a problem."""

    def __init__(self, family: Family, problem: Problem, metric: str) -> None:
        self.family, self.problem, self.metric = family, problem, metric
        self._losses: dict[str, float] = {}

    def loss(self, params: Mapping[str, Any]) -> float:
        key = json.dumps(params, sort_keys=True)
        if key not in self._losses:
            metrics = metrics_of(model(self.family, dict(params), self.problem), self.problem)
            value = metrics.get(self.metric, float("nan"))
            loss = 1.0 - value if self.metric in HIGHER_IS_BETTER else value
            self._losses[key] = loss if np.isfinite(loss) else FAILED
        return self._losses[key]


def losses(study: Study, objective: Objective, surrogate: Surrogate | None, trials: int) -> list[float]:
    """Returns the lowest loss so far, after every trial."""
    random, space = stream(*map(str, study)), objective.family.space
    if study.tuner == "default":
        values = [objective.loss({})]
    elif study.tuner == "halving":
        values = [halving(objective, random)]
    elif study.tuner == "random":
        values = [objective.loss(space.params(random.random(len(space)))) for _ in range(trials)]
    elif study.tuner == "tpe":
        values = [one.value for one in optuna_study("tpe", space, objective.loss, trials, random)]
    else:
        optimizer = Optimizer(space, surrogate, direction="minimize", seed=study.seed)
        optimizer.optimize(lambda trial: objective.loss(trial.params), trials)
        values = [trial.value for trial in optimizer.trials if trial.value is not None]
    return np.minimum.accumulate(values).tolist()


def halving(objective: Objective, random: np.random.Generator) -> float:
    """Returns the loss of the configuration that successive halving on rows chooses."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    space, problem = objective.family.space, objective.problem
    candidates = [space.params(random.random(len(space))) for _ in range(CANDIDATES)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        search = HalvingGridSearchCV(
            model(objective.family, {}, problem),
            [{name: [value] for name, value in params.items()} for params in candidates],
            factor=FACTOR,
            min_resources=len(problem.target) // FACTOR**2,
            cv=parts_of(problem),
            scoring=SCORING[objective.metric],
            refit=False,
            random_state=int(random.integers(2**31)),
        ).fit(problem.features, problem.target[:, 0])
    return objective.loss(search.best_params_)


def work(args: argparse.Namespace) -> None:
    """Runs what is missing."""
    finished = read_studies(args.out, Study)
    for name in args.family:
        family = FAMILIES[name]
        problems = {n: p for n, p in tasks_of(family).items() if n in args.problem}
        for metric, (problem_name, problem) in itertools.product(args.metric, problems.items()):
            if (metric in NUMBER_METRICS) == (problem.classes > 0):
                continue
            objective, surrogate = Objective(family, problem, metric), None
            for tuner, seed in itertools.product(("default", *args.tuners), range(args.seeds)):
                study = Study(tuner, name, problem_name, metric, seed)
                skip = (tuner == "default" and seed > 0) or (tuner == "halving" and metric not in SCORING)
                if study in finished or skip:
                    continue
                if tuner == "pretrained" and surrogate is None:
                    surrogate = fit(args.tables, family, metric, leave_out=source_of(problem_name))
                    surrogate = surrogate.with_direction("minimize")
                best = losses(study, objective, surrogate if tuner == "pretrained" else None, args.trials)
                append_study(args.out, study, [round(value, 6) for value in best])
            print(f"{name} {problem_name} {metric}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, help="folder of the tables")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="may be given again (default: all)")
    parser.add_argument("--problem", nargs="+", default=PROBLEMS, choices=PROBLEMS)
    parser.add_argument("--metric", nargs="+", default=["error", "r2"], choices=CLASS_METRICS + NUMBER_METRICS)
    parser.add_argument("--tuners", nargs="+", default=TUNERS, choices=TUNERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("pretrained.jsonl"))
    parser.add_argument("--report", action="store_true", help="print the tables of what is done, and run nothing")
    args = parser.parse_args()
    args.family = args.family or list(FAMILIES)
    if not args.report:
        work(args)
    print(report(read_studies(args.out, Study)))
    if args.tables is not None:
        print(f"\n### First suggestions on tables\n\n{first_table(first_suggestions(args.tables))}")


if __name__ == "__main__":
    with errors_in_one_line(), threadpool_limits(1):
        main()
