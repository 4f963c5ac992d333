"""From a configuration to its response: scikit-learn models, three-fold cross-validation, a skill score.

The score is `1 - S / S0` over the pooled out-of-fold predictions: S is the sum of squared errors (R^2 for numbers, the
multi-class Brier score for class probabilities), S0 the same for the training fold's mean or class shares. It is smooth
where accuracy is a staircase. Below 0 it is bent, s -> s / (1 - 4 s), into (-1/4, 0): one disaster does not flatten the
rest of a task once it is normalised by its worst and best response.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from .tasks import Array, Problem

Configuration = Mapping[str, Any]
Rows = NDArray[np.int64]
FOLDS = 3
FOLD_SEED = 0
MODEL_SEED = 0
FLOOR = 0.25
SVM_ITERATIONS = 20_000
"""A cap, because libsvm does not end in useful time on a steep polynomial."""


def scaler(level: str) -> BaseEstimator:
    if level == "rank":
        return QuantileTransformer(n_quantiles=30, output_distribution="normal")
    return StandardScaler() if level == "standard" else MinMaxScaler()


def svm(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {name: c[name] for name in ("C", "kernel", "gamma", "degree", "coef0") if name in c}
    make = SVC if problem.classes else SVR
    return make_pipeline(scaler(c["scaler"]), make(**arguments, max_iter=SVM_ITERATIONS))


def random_forest(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {k: v for k, v in c.items() if k not in ("bootstrap", "splitter")}
    makers = {
        ("best", True): RandomForestClassifier,
        ("best", False): RandomForestRegressor,
        ("random", True): ExtraTreesClassifier,
        ("random", False): ExtraTreesRegressor,
    }
    make = makers[c["splitter"], problem.classes > 0]
    return make(**arguments, bootstrap=c["bootstrap"] == "true", random_state=MODEL_SEED, n_jobs=None)


def gradient_boosting(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {k: v for k, v in c.items() if k not in ("early_stopping", "init")}
    make = GradientBoostingClassifier if problem.classes else GradientBoostingRegressor
    return make(**arguments, init="zero" if c["init"] == "zero" else None, random_state=MODEL_SEED)


def nearest_neighbours(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {name: c[name] for name in ("n_neighbors", "metric", "weights", "p") if name in c}
    make = KNeighborsClassifier if problem.classes else KNeighborsRegressor
    steps = [scaler(c["scaler"])]
    if c["projection"] == "pca":
        # a share of the columns, at least one: tasks have from 2 to 32
        count = max(1, round(c["n_components"] * problem.features.shape[1]))
        steps.append(PCA(count, svd_solver="full"))
    return make_pipeline(*steps, make(**arguments))


MODELS = {
    "svm": svm,
    "random-forest": random_forest,
    "gradient-boosting": gradient_boosting,
    "nearest-neighbours": nearest_neighbours,
}


def parts_of(problem: Problem) -> list[tuple[Rows, Rows]]:
    """Row numbers to fit on and those held out, of each fold."""
    splitter = (StratifiedKFold if problem.classes else KFold)(FOLDS, shuffle=True, random_state=FOLD_SEED)
    return list(splitter.split(problem.features, problem.target[:, 0]))


def predict(model: BaseEstimator, features: Array, problem: Problem, method: str) -> Array:
    """Out-of-fold predictions, (n, k)."""
    output = cross_val_predict(model, features, problem.target[:, 0], cv=parts_of(problem), method=method)
    return np.asarray(output, float).reshape(len(features), -1)


def class_predictions(model: BaseEstimator, problem: Problem) -> tuple[Array, Array]:
    """Probabilities (n, classes), and the same or decision values (n, k), out of fold.

    Decision values become probabilities by a logistic curve, for each fold by one that is fitted on the others.
    """
    if hasattr(model, "predict_proba"):
        probabilities = predict(model, problem.features, problem, "predict_proba")
        return probabilities, probabilities
    decisions = predict(model, problem.features, problem, "decision_function")
    scaled_decisions = decisions / np.maximum(decisions.std(axis=0), 1e-12)
    return predict(LogisticRegression(), scaled_decisions, problem, "predict_proba"), decisions


def cross_validate(model: BaseEstimator, problem: Problem) -> float:
    # (n, 1) numbers, or (n, classes) ones and zeros
    truth = np.eye(problem.classes)[problem.target[:, 0].astype(int)] if problem.classes else problem.target
    baseline = np.empty_like(truth)
    for fit, test in parts_of(problem):
        baseline[test] = truth[fit].mean(axis=0)
    if problem.classes:
        predictions, _ = class_predictions(model, problem)
    else:
        predictions = predict(model, problem.features, problem, "predict")
    return bend(1.0 - float(((truth - predictions) ** 2).sum() / ((truth - baseline) ** 2).sum()))


def bend(skill: float) -> float:
    return skill if skill >= 0.0 else skill / (1.0 - skill / FLOOR)


def response(space: str, configuration: Configuration, problem: Problem) -> float:
    """The response of one configuration, at most 1, maximised."""
    with warnings.catch_warnings():
        # the iteration cap and folds with too few distinct values are part of the landscape
        warnings.simplefilter("ignore")
        return cross_validate(MODELS[space](configuration, problem), problem)
