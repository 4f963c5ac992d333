"""Evaluations of the families of `dre_jax.tuning.pretrained`: models, tasks, metrics, tables."""

import importlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from dre_jax.data.files import read_json
from dre_jax.methods.hedged_prior.common_process import CommonProcessConfig
from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.tuning import Evaluated, Surrogate, past_of
from dre_jax.tuning.pretrained import FAMILIES, Family

from .generated import all_problems, source_of
from .scoring import MODEL_SEED, SVM_ITERATIONS, class_predictions, predict
from .spaces import stream
from .tasks import Problem

HIGHER_IS_BETTER = ("auc", "r2")
TIE_DECIMALS = 4
"""Metrics that are equal to so many decimals count as equal: a default may be a penalty of 1e-4 for one of 0."""


class TableSize(NamedTuple):
    """How many configurations and tasks a family is evaluated on."""

    shared: int
    """Configurations that all tasks have."""
    fresh: int
    """Configurations of a task alone."""
    half: bool = False
    """Whether half of the tasks are left out."""
    near: int = 0
    """How many of the shared configurations are close to the defaults."""


SIZES = {
    **{name: TableSize(40, 24) for name in FAMILIES},
    "extra-trees": TableSize(44, 8, near=12),
    **{name: TableSize(24, 6) for name in ("xgboost", "lightgbm")},
    "random-forest": TableSize(36, 6, half=True, near=12),
    **{name: TableSize(16, 8, half=True) for name in ("hist-gradient-boosting", "mlp")},
}
"""By family; fits that take longer get fewer. Of forests, few configurations at random are as good as the defaults."""
NEAR = 0.15
"""Standard deviation of configurations that are close to the defaults, in units of the ranges."""
TARGET_SCALES = (1.0, 10.0, 100.0)
OFFSET = 2.0
"""Mean of targets that are not standardised, in standard deviations."""
METHOD = HedgedPrior(common=CommonProcessConfig(rows=0))
"""The recommended method, without the process that would keep the past trials and their covariance in a surrogate."""
FIXED_SETTINGS: dict[str, dict[str, Any]] = {
    "svc": {"max_iter": SVM_ITERATIONS},
    "svr": {"max_iter": SVM_ITERATIONS},
    "xgboost": {"n_jobs": 1, "verbosity": 0},
    "lightgbm": {"n_jobs": 1, "verbose": -1},
}
"""Arguments that are not tuned; all models with a seed have the same."""


def model(family: Family, params: dict[str, Any], problem: Problem) -> Any:
    """Returns the estimator of a configuration."""
    path = family.classifier if problem.classes else family.regressor
    module, _, name = str(path).rpartition(".")
    estimator = getattr(importlib.import_module(module), name)(**FIXED_SETTINGS.get(family.name, {}))
    seed = {"random_state": MODEL_SEED} if "random_state" in estimator.get_params() else {}
    return estimator.set_params(**seed, **params)


def metrics_of(estimator: Any, problem: Problem) -> dict[str, float]:
    """Returns the metrics of out-of-fold predictions of three folds; empty if the fit fails."""
    target = problem.target[:, 0]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if not problem.classes:
                predictions = predict(estimator, problem.features, problem, "predict")[:, 0]
                return {"r2": r2_score(target, predictions), "mae": mean_absolute_error(target, predictions)}
            probabilities, decisions = class_predictions(estimator, problem)
            labels = decisions.argmax(axis=1) if decisions.shape[1] > 1 else decisions[:, 0] > 0
            scores = probabilities[:, 1] if problem.classes == 2 else probabilities
            return {
                "error": float(np.mean(np.unique(target)[labels.astype(int)] != target)),
                "log_loss": log_loss(target, probabilities),
                "auc": roc_auc_score(target, scores, multi_class="ovr"),
            }
    except ValueError:  # fits whose numbers overflow
        return {}


def table_tasks(family: Family) -> dict[str, Problem]:
    """Returns the tasks of a family's table: every other one has standardised columns, targets have three scales."""
    fitting = [p for p in all_problems() if (family.classifier if p.classes else family.regressor)]
    # Standardised columns alternate, so half of the tasks are two of four.
    return {p.name: _scale_problem(p, i) for i, p in enumerate(fitting) if not SIZES[family.name].half or i % 4 < 2}


def _scale_problem(problem: Problem, number: int) -> Problem:
    features = StandardScaler().fit_transform(problem.features) if number % 2 else problem.features
    scale = TARGET_SCALES[number % len(TARGET_SCALES)]
    target = problem.target if problem.classes or scale == 1.0 else (problem.target + OFFSET) * scale
    return Problem(problem.name, features, target, problem.classes)


def evaluate(family: Family, problem: Problem) -> dict[str, Any]:
    """Returns the table of a task: configurations with their metrics, and the metrics of the library's defaults."""
    space, size = family.space, SIZES[family.name]
    shared, own = stream(family.name, "shared"), stream(family.name, problem.name)
    points = [*shared.random((size.shared - size.near - 1, len(space)))]
    around = space.point(family.default) + NEAR * shared.standard_normal((size.near, len(space)))
    points += [*np.clip(around, 0.0, 1.0), *own.random((size.fresh, len(space)))]
    configurations = [family.default, *map(space.params, points)]
    default, *metrics = (metrics_of(model(family, params, problem), problem) for params in ({}, *configurations))
    rows = [
        {"params": configuration, "metrics": values}
        for configuration, values in zip(configurations, metrics, strict=True)
    ]
    return {"task": problem.name, "default": default, "rows": rows}


def fit(folder: Path, family: Family, metric: str) -> Surrogate:
    """Returns the surrogate of a family and a metric, which learns from the tables of all tasks.

    It suggests first what is better than the model's defaults on most data sets, then what leaves the least regret.
    """
    tables = [t for t in map(read_json, sorted((folder / family.name).glob("*.json"))) if metric in t["default"]]
    tasks = {
        table["task"]: [Evaluated(row["params"], row["metrics"][metric]) for row in table["rows"] if row["metrics"]]
        for table in tables
    }
    direction = "maximize" if metric in HIGHER_IS_BETTER else "minimize"
    past = past_of(family.space, tasks, direction=direction, metric=metric)
    surrogate = Surrogate.fit(past, method=METHOD, quiet=True)
    index = most_often_better(gains(tables, family, metric))
    first = family.space.check(tables[0]["rows"][index]["params"])
    row = family.space.encode(first)
    others = [
        configuration
        for configuration in surrogate.start
        if np.abs(family.space.encode(configuration) - row).max() > 1e-3
    ]
    return replace(surrogate, start=(first, *others[:1]))


def gains(tables: list[dict[str, Any]], family: Family, metric: str) -> dict[str, np.ndarray]:
    """Returns by task how much better each shared configuration is than the library's defaults, f64[N]."""
    sign, n = (1.0 if metric in HIGHER_IS_BETTER else -1.0), SIZES[family.name].shared
    gain_by_task = {}
    for table in tables:
        values = [row["metrics"].get(metric, -sign * np.inf) for row in table["rows"][:n]]
        gain_by_task[table["task"]] = np.round(sign * (np.array(values) - table["default"][metric]), TIE_DECIMALS)
    return gain_by_task


def most_often_better(gain: dict[str, np.ndarray]) -> int:
    """Returns the configuration that beats the defaults most often; data sets count alike."""
    by_source: dict[str, list[np.ndarray]] = {}
    for task, values in gain.items():
        by_source.setdefault(source_of(task), []).append(np.sign(values))
    return int(np.argmax(np.mean([np.mean(signs, axis=0) for signs in by_source.values()], axis=0)))
