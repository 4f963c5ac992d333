"""Search spaces that do not ship: trees, linear models, and margins on principal components.

Nothing of the library was chosen on them, so that they say how its defaults do elsewhere. Some have the bundled data's
score, which is smooth; others the share of right answers, which is a staircase with many ties.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from dre_jax.data.files import read_json
from dre_jax.tuning import Space
from dre_jax.tuning.space.json_format import from_json

from .scoring import FLOOR, MODEL_SEED, Configuration, cross_validate, parts_of, scaler
from .tasks import Problem

TREES: dict[tuple[str, bool], Any] = {
    ("best", True): DecisionTreeClassifier,
    ("best", False): DecisionTreeRegressor,
    ("random", True): ExtraTreeClassifier,
    ("random", False): ExtraTreeRegressor,
}

ROBUST = {"hinge": "epsilon_insensitive", "log_loss": "squared_error", "modified_huber": "huber"}
"""For numbers, the loss that stands for one of classes."""


Score = Callable[[BaseEstimator, Problem], float]


def right(model: BaseEstimator, problem: Problem) -> float:
    """The share of rows whose class is predicted rightly, out of fold; the bundled data's score for numbers."""
    if not problem.classes:
        return cross_validate(model, problem)
    target = problem.target[:, 0]
    return float(np.mean(cross_val_predict(model, problem.features, target, cv=parts_of(problem)) == target))


class Unseen(NamedTuple):
    """A search space, and how its models are made and scored."""

    space: Space
    make: Callable[[Configuration, Problem], BaseEstimator]
    score: Score


def decision_tree(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {name: value for name, value in c.items() if name != "splitter"}
    return TREES[c.get("splitter", "best"), problem.classes > 0](**arguments, random_state=MODEL_SEED)


def linear(c: Configuration, problem: Problem) -> BaseEstimator:
    make, loss = (SGDClassifier, "log_loss") if problem.classes else (SGDRegressor, "squared_error")
    arguments = {name: c[name] for name in ("alpha", "l1_ratio", "eta0", "power_t", "learning_rate", "max_iter")}
    average = c["average"] == "true"
    model = make(loss=loss, penalty="elasticnet", tol=None, average=average, random_state=MODEL_SEED, **arguments)
    return make_pipeline(scaler(c["scaler"]), model)


def margins(c: Configuration, problem: Problem) -> BaseEstimator:
    loss = c["loss"] if problem.classes else ROBUST[c["loss"]]
    arguments = {name: c[name] for name in ("alpha", "eta0", "penalty", "learning_rate", "max_iter")}
    make = SGDClassifier if problem.classes else SGDRegressor
    projection = PCA(max(1, round(c["components"] * problem.features.shape[1])), svd_solver="full")
    return make_pipeline(
        scaler(c["scaler"]), projection, make(loss=loss, tol=None, random_state=MODEL_SEED, **arguments)
    )


_MODELS: dict[str, tuple[Callable[[Configuration, Problem], BaseEstimator], Score]] = {
    "decision-tree": (decision_tree, cross_validate),
    "linear": (linear, cross_validate),
    "margins": (margins, right),
}
_PARAMETERS = read_json(Path(__file__).with_name("unseen_spaces.json"))
SPACES = {name: Unseen(from_json(_PARAMETERS[name]), *model) for name, model in _MODELS.items()}


def response(unseen: Unseen, row: np.ndarray, problem: Problem) -> float:
    """Returns the score of an encoded configuration; one whose fit diverges has the lowest."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # steps that diverge and epochs that end early are part of the landscape
            score = unseen.score(unseen.make(unseen.space.decode(row), problem), problem)
    except ValueError:  # a fit whose numbers overflow is refused by scikit-learn
        return -FLOOR
    return score if np.isfinite(score) else -FLOOR
