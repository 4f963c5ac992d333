"""Search spaces that do not ship: decision trees, linear models by stochastic gradients, perceptrons.

Nothing of the library was chosen on them, so that they say how its defaults do elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from dre_jax.tuning import Categorical, Float, Int, Space

from .scoring import MODEL_SEED, Configuration, scaler
from .tasks import Problem

SCALERS = Categorical(("standard", "minmax", "rank"))
TREES: dict[tuple[str, bool], Any] = {
    ("best", True): DecisionTreeClassifier,
    ("best", False): DecisionTreeRegressor,
    ("random", True): ExtraTreeClassifier,
    ("random", False): ExtraTreeRegressor,
}


class Unseen(NamedTuple):
    """A search space, how its models are made, and how many rows a task has."""

    space: Space
    make: Any
    rows: int


def decision_tree(c: Configuration, problem: Problem) -> BaseEstimator:
    arguments = {name: value for name, value in c.items() if name != "splitter"}
    return TREES[c["splitter"], problem.classes > 0](**arguments, random_state=MODEL_SEED)


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
}
