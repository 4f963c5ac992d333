"""Search spaces that do not ship: trees, ensembles of them, linear models and perceptrons.

Nothing of the library was chosen on them, so that they say how its defaults do elsewhere. Some have the bundled data's
score, which is smooth; others the share of right answers, which is a staircase with many ties.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor
from sklearn.feature_selection import SelectPercentile, f_classif, f_regression
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from dre_jax.tuning import Categorical, Float, Int, Space

from .scoring import MODEL_SEED, Configuration, cross_validate, parts_of, scaler
from .tasks import Problem

SCALERS = Categorical(("standard", "minmax", "rank"))
TREES: dict[tuple[str, bool], Any] = {
    ("best", True): DecisionTreeClassifier,
    ("best", False): DecisionTreeRegressor,
    ("random", True): ExtraTreeClassifier,
    ("random", False): ExtraTreeRegressor,
}


MAPS = {"fourier": RBFSampler, "nystroem": Nystroem}
ROBUST = {"hinge": "epsilon_insensitive", "log_loss": "squared_error", "modified_huber": "huber"}
"""For numbers, the loss that stands for one of classes."""


def right(model: BaseEstimator, problem: Problem) -> float:
    """The share of rows whose class is predicted rightly, out of fold; the bundled data's score for numbers."""
    if not problem.classes:
        return cross_validate(model, problem)
    target = problem.target[:, 0]
    return float(np.mean(cross_val_predict(model, problem.features, target, cv=parts_of(problem)) == target))


class Unseen(NamedTuple):
    """A search space, how its models are made and scored, and how many rows a task has."""

    space: Space
    make: Callable[[Configuration, Problem], BaseEstimator]
    rows: int
    score: Callable[[BaseEstimator, Problem], float] = cross_validate


def decision_tree(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {name: value for name, value in c.items() if name != "splitter"}
    return TREES[c.get("splitter", "best"), problem.classes > 0](**arguments, random_state=MODEL_SEED)


def linear(c: Configuration, problem: Problem) -> BaseEstimator:
    make, loss = (SGDClassifier, "log_loss") if problem.classes else (SGDRegressor, "squared_error")
    arguments = {name: c[name] for name in ("alpha", "l1_ratio", "eta0", "power_t", "learning_rate", "max_iter")}
    average = c["average"] == "true"
    model = make(loss=loss, penalty="elasticnet", tol=None, average=average, random_state=MODEL_SEED, **arguments)
    return make_pipeline(scaler(c["scaler"]), model)


def perceptron(c: Configuration, problem: Problem) -> BaseEstimator:
    make = MLPClassifier if problem.classes else MLPRegressor
    own = {name: value for name, value in c.items() if name not in ("width", "layers", "scaler")}
    model = make(hidden_layer_sizes=(c["width"],) * c["layers"], tol=0.0, random_state=MODEL_SEED, **own)
    return make_pipeline(scaler(c["scaler"]), model)


def ridge(c: Configuration, problem: Problem) -> BaseEstimator:
    return (RidgeClassifier if problem.classes else Ridge)(alpha=c["alpha"])


def random_features(c: Configuration, problem: Problem) -> BaseEstimator:
    features = MAPS[c["map"]](gamma=c["gamma"], n_components=c["n_components"], random_state=MODEL_SEED)
    return make_pipeline(scaler(c["scaler"]), features, ridge(c, problem))


def selected_features(c: Configuration, problem: Problem) -> BaseEstimator:
    select = SelectPercentile(f_classif if problem.classes else f_regression, percentile=c["percentile"])
    products = PolynomialFeatures(c["degree"], interaction_only=c["squares"] == "false")
    return make_pipeline(scaler(c["scaler"]), select, products, ridge(c, problem))


def margins(c: Configuration, problem: Problem) -> BaseEstimator:
    loss = c["loss"] if problem.classes else ROBUST[c["loss"]]
    arguments = {name: c[name] for name in ("alpha", "eta0", "penalty", "learning_rate", "max_iter")}
    make = SGDClassifier if problem.classes else SGDRegressor
    projection = PCA(max(1, round(c["components"] * problem.features.shape[1])), svd_solver="full")
    return make_pipeline(
        scaler(c["scaler"]), projection, make(loss=loss, tol=None, random_state=MODEL_SEED, **arguments)
    )


def bagging(c: Configuration, problem: Problem) -> BaseEstimator:
    tree = TREES["best", problem.classes > 0](max_depth=c["max_depth"], min_samples_leaf=c["min_samples_leaf"])
    arguments = {name: c[name] for name in ("n_estimators", "max_samples", "max_features")}
    make = BaggingClassifier if problem.classes else BaggingRegressor
    return make(tree, bootstrap=c["bootstrap"] == "true", random_state=MODEL_SEED, **arguments)


def ada_boost(c: Configuration, problem: Problem) -> BaseEstimator:
    tree = TREES["best", problem.classes > 0](max_depth=c["max_depth"], max_features=c["max_features"])
    arguments = {name: c[name] for name in ("n_estimators", "learning_rate")}
    if problem.classes:
        return AdaBoostClassifier(tree, random_state=MODEL_SEED, **arguments)
    return AdaBoostRegressor(tree, random_state=MODEL_SEED, loss=c["loss"], **arguments)


SPACES = {
    "decision-tree": Unseen(
        Space(
            {
                "max_depth": Int(1, 16),
                "min_samples_split": Float(0.005, 0.5, log=True),
                "min_samples_leaf": Float(0.002, 0.3, log=True),
                "max_features": Float(0.1, 1.0),
                "ccp_alpha": Float(1e-5, 0.1, log=True),
                "splitter": Categorical(("best", "random")),
            }
        ),
        decision_tree,
        256,
    ),
    "linear": Unseen(
        Space(
            {
                "scaler": SCALERS,
                "alpha": Float(1e-6, 1.0, log=True),
                "l1_ratio": Float(0.0, 1.0),
                "learning_rate": Categorical(("constant", "invscaling", "adaptive")),
                "eta0": Float(1e-4, 1.0, log=True),
                "power_t": Float(0.05, 0.8),
                "max_iter": Int(2, 100, log=True),
                "average": Categorical(("false", "true")),
            }
        ),
        linear,
        256,
    ),
    "perceptron": Unseen(
        Space(
            {
                "scaler": SCALERS,
                "width": Int(4, 64, log=True),
                "layers": Int(1, 3),
                "activation": Categorical(("relu", "tanh")),
                "alpha": Float(1e-6, 10.0, log=True),
                "learning_rate_init": Float(1e-4, 0.3, log=True),
                "batch_size": Int(8, 64, log=True),
                "max_iter": Int(3, 40, log=True),
                "solver": Categorical(("adam", "sgd")),
                "momentum": Float(0.0, 0.99, when={"solver": "sgd"}),
            }
        ),
        perceptron,
        160,
    ),
    "pruned-tree": Unseen(
        Space(
            {
                "max_depth": Int(1, 30, log=True),
                "min_samples_leaf": Int(1, 40, log=True),
                "min_samples_split": Int(2, 80, log=True),
                "min_impurity_decrease": Float(1e-5, 0.1, log=True),
                "max_leaf_nodes": Int(2, 64, log=True),
            }
        ),
        decision_tree,
        256,
        right,
    ),
    "random-features": Unseen(
        Space(
            {
                "scaler": SCALERS,
                "map": Categorical(tuple(MAPS)),
                "gamma": Float(1e-3, 10.0, log=True),
                "n_components": Int(4, 64, log=True),
                "alpha": Float(1e-4, 100.0, log=True),
            }
        ),
        random_features,
        192,
        right,
    ),
    "selected-features": Unseen(
        Space(
            {
                "scaler": SCALERS,
                "percentile": Float(10.0, 100.0),
                "degree": Int(1, 2),
                "squares": Categorical(("false", "true")),
                "alpha": Float(1e-3, 1e3, log=True),
            }
        ),
        selected_features,
        192,
        right,
    ),
    "margins": Unseen(
        Space(
            {
                "scaler": SCALERS,
                "components": Float(0.2, 1.0),
                "loss": Categorical(tuple(ROBUST)),
                "penalty": Categorical(("l2", "l1")),
                "learning_rate": Categorical(("constant", "invscaling", "adaptive")),
                "alpha": Float(1e-6, 0.3, log=True),
                "eta0": Float(1e-4, 1.0, log=True),
                "max_iter": Int(1, 40, log=True),
            }
        ),
        margins,
        256,
        right,
    ),
    "bagging": Unseen(
        Space(
            {
                "max_depth": Int(1, 12),
                "min_samples_leaf": Int(1, 20, log=True),
                "n_estimators": Int(1, 12, log=True),
                "max_samples": Float(0.1, 1.0),
                "max_features": Float(0.1, 1.0),
                "bootstrap": Categorical(("false", "true")),
            }
        ),
        bagging,
        192,
    ),
    "ada-boost": Unseen(
        Space(
            {
                "max_depth": Int(1, 6),
                "max_features": Float(0.1, 1.0),
                "n_estimators": Int(1, 20, log=True),
                "learning_rate": Float(0.02, 2.0, log=True),
                "loss": Categorical(("linear", "square", "exponential")),
            }
        ),
        ada_boost,
        160,
        right,
    ),
}
