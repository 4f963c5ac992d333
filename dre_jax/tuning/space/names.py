"""Beliefs by name: where good values of a hyperparameter were in other search spaces.

A name's density is that of the best tenth of a task's configurations, relative to all of them: the geometric mean over
tasks, then over search spaces and one more that knows nothing. It is a function of the values in their own units, or of
their logarithms where none is 0, so that bounds may differ; beyond the values of all spaces, it is that of the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.data.files import read_json
from dre_jax.tuning.space.parameters import Categorical, Parameter
from dre_jax.tuning.space.space import Space

Floats = npt.NDArray[np.float64]

_SHARPNESS = 2.0
"""Power of the mean density: geometric means over tasks are flatter than the density of one."""
_ALIASES = {
    "learning_rate": ("eta", "eta0", "learning_rate_init", "lr", "shrinkage"),
    "n_estimators": ("iterations", "n_trees", "nrounds", "num.trees", "num_boost_round", "num_iterations", "num_round"),
    "alpha": ("l2", "weight_decay"),
    "C": ("cost",),
    "n_neighbors": ("k",),
    "max_depth": ("depth", "maxdepth"),
    "subsample": ("bagging_fraction", "max_samples", "sample.fraction"),
    "max_features": ("colsample_bytree", "feature_fraction"),
    "min_samples_leaf": ("min.node.size", "min_child_samples", "min_data_in_leaf", "minbucket"),
    "reg_lambda": ("l2_regularization", "lambda", "lambda_l2"),
}
_NAMES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}


class NumberBelief(NamedTuple):
    """Log densities of a number's values."""

    log: bool
    """Whether knots are logarithms."""
    low: float
    high: float
    """The first and the last knot; the others are evenly spaced."""
    log_densities: tuple[float, ...]


class NameBeliefs(NamedTuple):
    """Log densities, up to a constant, by canonical name."""

    numbers: Mapping[str, NumberBelief]
    choices: Mapping[str, Mapping[str, float]]
    """By choice, in lower case."""


@cache
def read_name_beliefs() -> NameBeliefs:
    """Returns the beliefs that the package has."""
    content = read_json(Path(__file__).with_name("name_beliefs.json"))
    return NameBeliefs({name: NumberBelief(*belief) for name, belief in content["numbers"].items()}, content["choices"])


def canonical_name(name: str) -> str:
    """Returns the name that stands for its aliases, without the prefix of a step of a pipeline.

    Example:
      >>> canonical_name("eta"), canonical_name("svc__C")
      ('learning_rate', 'C')
    """
    name = name.rpartition("__")[2]
    return _NAMES.get(name, name)


def log_densities_by_name(beliefs: NameBeliefs, space: Space, knots: int = 129) -> Floats:
    """Returns log densities f64[P, K + 1] at evenly spaced coordinates, up to a constant; 0 for unknown names.

    Args:
      beliefs: by name.
      space: the search space.
      knots: K + 1.
    """
    u = np.linspace(0.0, 1.0, knots)
    parts = zip(space.sequence, space.layout.parts, strict=True)
    return _SHARPNESS * np.array([_log_density(beliefs, name, space[name], part, u) for name, part in parts])


def _log_density(beliefs: NameBeliefs, name: str, parameter: Parameter, part: Any, u: Floats) -> Floats:
    canonical = canonical_name(name)
    if isinstance(parameter, Categorical):
        known = beliefs.choices.get(canonical, {})
        shares = np.array([known.get(choice_key(choice), 0.0) for choice in parameter.choices])
        return shares[np.minimum((u * len(shares)).astype(int), len(shares) - 1)]
    belief = beliefs.numbers.get(canonical)
    if belief is None or (belief.log and parameter.low <= 0):
        return np.zeros_like(u)
    values = np.asarray(part.values(u), np.float64)
    at = np.log(values) if belief.log else values
    return np.interp(at, np.linspace(belief.low, belief.high, len(belief.log_densities)), belief.log_densities)


def choice_key(choice: Any) -> str:
    """Returns the text of a choice: that of true and "True" is one."""
    return str(choice).lower()
