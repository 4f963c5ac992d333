"""Methods whose values a test knows, in place of a class in each test."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dre_jax.methods import METHODS
from dre_jax.methods.checkpoints.parameters import abstract_params
from dre_jax.methods.entries.settings import leaves
from dre_jax.search import Capabilities, History

NOTHING_DECLARED = Capabilities()


@dataclass(frozen=True)
class Valued:
    """Values candidates by a function of the history and their columns; methods of one function are equal."""

    value: Callable[[History, Array], Array]
    capabilities: Capabilities = NOTHING_DECLARED

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        return self.value(history, candidates.x)

    sample_posterior = acquire


def near_the_best(history, x):
    """Returns minus the squared distances from the best trial; zeros before the first."""
    best = history.x[jnp.argmin(jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max))]
    return jnp.where(jnp.any(history.where), -jnp.sum((x - best[None]) ** 2, axis=-1), 0.0)


NEAREST = Valued(near_the_best)


def first_column(history, x):
    return x[:, 0]


RISING = Valued(first_column)


@dataclass(frozen=True)
class TaskMeans:
    """Learns the mean responses of past tasks, and values candidates by their first column."""

    def fit(self, meta, key):
        return {"mean": jnp.array([task.y.mean() for task in meta.train.values()], jnp.float32)}

    def acquire(self, params, history, candidates, key):
        return candidates.x[:, 0]


@dataclass(frozen=True)
class BestLine:
    """Fits a line in the features to the best rows of past tasks, and values candidates near it highest."""

    def fit(self, meta, key):
        tasks = list(meta.train.values())
        best = np.array([task.X[np.argmax(task.y)] for task in tasks], np.float64)
        rows = np.array([() if task.features is None else task.features for task in tasks], np.float64)
        known = ~np.isnan(rows).any(axis=1)
        centre = rows[known].mean(axis=0)
        inputs = np.column_stack([np.ones(known.sum()), rows[known] - centre])
        line = np.linalg.lstsq(inputs, best[known], rcond=None)[0]
        freedom = max(known.sum() - inputs.shape[1], 1)
        variance = ((best[known] - inputs @ line) ** 2).sum(axis=0) / freedom
        errors = np.sqrt(variance[:, None] * np.diag(np.linalg.pinv(inputs.T @ inputs))[1:])
        arrays = {"best": line[0], "slopes": line[1:].T, "errors": errors, "centre": centre}
        return {name: jnp.array(array, jnp.float32) for name, array in arrays.items()}

    def abstract_params(self, n_columns):
        d, p = n_columns, 1
        shapes = {"best": (d,), "slopes": (d, p), "errors": (d, p), "centre": (p,)}
        return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}

    def for_task(self, params, features):
        distance = jnp.nan_to_num(features - params["centre"])
        return {**params, "best": params["best"] + params["slopes"] @ distance}

    def scaling_slopes(self, params):
        return (params["slopes"], params["errors"]) if params["centre"].size else None

    def acquire(self, params, history, candidates, key):
        return -jnp.sum((candidates.x - params["best"][None]) ** 2, axis=-1)


def zero_params(method, n_columns):
    """What a checkpoint of the method can hold, for tests that compute nothing with it."""
    return jax.tree.map(lambda like: np.zeros(like.shape, like.dtype), abstract_params(method, n_columns))


# Endings of the fields that decide how long a method takes, and little ones; what is off or empty stays so.
LITTLE = {
    "model.members": 2, "model.hidden": (4,), "model.phi": (4,), "model.rho": (4,), "model.layers": (4,),
    "training.steps": 4, "training.evaluate_every": 4, "training.n_support": 2, "training.n_query": 4,
    "training.evaluation_lists": 2, "meta_training.steps": 4, "meta_training.batch": 8, "prior.steps": 30,
    "prior.trend": (4,), "prior.layers": (4,), "prior.members": 2, "training.tasks": 2, "training.rows": 6,
    "chain.samples": 2, "chain.keep_every": 1,
}  # fmt: skip
STEPS = {"fine_tuning.epochs", "fitting.steps", "tuning.steps", "chain.burn_in"}  # before every trial: two
SIMPLE = {"common.rows": 0, "processes.steps": 0, "processes.draws": 8, "processes.selected": 4}
"""Settings of `hedged-prior` that leave out what takes longest to compile: the common process and fits to the task."""


def quick_method(name, times=1):
    """A method by name, as it is but for little to compute; so many times as many steps before every trial."""
    fields = dict(leaves(METHODS[name].default))
    ends = {path: ".".join(path.split(".")[-2:]) for path, value in fields.items() if value}
    little = LITTLE | dict.fromkeys(STEPS, 2 * times)
    return METHODS[name].make({path: little[end] for path, end in ends.items() if end in little})


def by_class(names, marks=()):
    """Parameters of a test: methods by name; of those of one class, all but the first are for the thorough tests."""
    result, classes_so_far = [], set()
    for name in names:
        kind = type(METHODS[name].default), METHODS[name].transfer
        more = [] if kind not in classes_so_far else [pytest.mark.thorough]
        result.append(pytest.param(name, marks=[*more, *dict(marks).get(name, [])]))
        classes_so_far.add(kind)
    return result
