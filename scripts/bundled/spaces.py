"""The search spaces, what describes them in HPO-B's form, and configurations drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dre_jax.data.columns import level_column, missing_column
from dre_jax.search.layout import Scale
from dre_jax.tuning import Categorical, Float, Int, Space
from dre_jax.tuning.descriptors import LOG_OFFSET, from_descriptor
from dre_jax.tuning.parameters import Parameter
from dre_jax.tuning.space import Params

Json = dict[str, Any]
_EARLY = {"early_stopping": "on"}
_SCALER = Categorical(("minmax", "rank", "standard"))

_DECLARED: dict[str, dict[str, Parameter]] = {
    "svm": {
        "C": Float(0.01, 1000.0, log=True),
        "gamma": Float(0.001, 10.0, log=True, when={"kernel": ("poly", "rbf", "sigmoid")}),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "coef0": Float(0.0, 2.0, when={"kernel": ("poly", "sigmoid")}),
        "kernel": Categorical(("linear", "poly", "rbf", "sigmoid")),
        "scaler": _SCALER,
    },
    "random-forest": {
        "n_estimators": Int(3, 60, log=True),
        "max_depth": Int(1, 16),
        "min_samples_leaf": Int(1, 32, log=True),
        "max_features": Float(0.05, 1.0),
        "max_samples": Float(0.2, 1.0, when={"bootstrap": "true"}),
        "bootstrap": Categorical(("false", "true")),
        "splitter": Categorical(("best", "random")),
    },
    "gradient-boosting": {
        "learning_rate": Float(0.005, 1.0, log=True),
        "n_estimators": Int(5, 120, log=True),
        "max_depth": Int(1, 6),
        "min_samples_leaf": Int(1, 32, log=True),
        "subsample": Float(0.3, 1.0),
        "max_features": Float(0.1, 1.0),
        "n_iter_no_change": Int(1, 20, log=True, when=_EARLY),
        "validation_fraction": Float(0.1, 0.4, when=_EARLY),
        "early_stopping": Categorical(("off", "on")),
        "init": Categorical(("prior", "zero")),
    },
    "nearest-neighbours": {
        "n_neighbors": Int(1, 50, log=True),
        "p": Float(1.0, 5.0, when={"metric": "minkowski"}),
        "n_components": Float(0.1, 1.0, when={"projection": "pca"}),
        "metric": Categorical(("cosine", "minkowski")),
        "projection": Categorical(("none", "pca")),
        "scaler": _SCALER,
        "weights": Categorical(("distance", "uniform")),
    },
}


def describe(parameters: Mapping[str, Parameter]) -> Json:
    """HPO-B's keys, and beside them what decoding needs: kind, bounds as declared, levels and conditions."""
    variables: Json = {}
    order: list[str] = []
    for name, parameter in parameters.items():
        if isinstance(parameter, Categorical):
            variables[name] = {"kind": "categorical", "categories": list(parameter.choices)}
            order += [level_column(name, str(level)) for level in parameter.choices]
            continue
        variables[name] = _describe_number(parameter)
        order.append(name)
        if parameter.when:
            order.append(missing_column(name))
            variables[order[-1]] = {"kind": "missing-flag", "of": name, "min": 0.0, "max": 1.0}
    logs = [name for name, parameter in parameters.items() if getattr(parameter, "log", False)]
    return {"variables": variables, "variables_to_apply_log": logs, "variables_order": order}


def _describe_number(parameter: Float | Int) -> Json:
    scale = Scale(parameter.low, parameter.high, parameter.log, LOG_OFFSET)
    low, high = (float(scale.transform(bound)) for bound in (parameter.low, parameter.high))
    found: Json = {"kind": "integer" if isinstance(parameter, Int) else "numeric", "min": low, "max": high}
    found |= {"min_before_tf": parameter.low, "max_before_tf": parameter.high}
    for parent, levels in parameter.when:  # there is one at most
        found["condition"] = {"variable": parent, "levels": list(levels)}
    return found


DESCRIPTORS = {name: describe(parameters) for name, parameters in _DECLARED.items()}
SPACES: dict[str, Space] = {name: from_descriptor(descriptor) for name, descriptor in DESCRIPTORS.items()}


def sample(space: Space, rng: np.random.Generator) -> Params:
    """A configuration, uniform on the encoded scale."""
    levels: Params = {
        n: str(rng.choice([*map(str, p.choices)])) for n, p in space.items() if isinstance(p, Categorical)
    }
    # Every number is drawn, active or not, so that the stream does not depend on the levels.
    numbers = {n: _draw(p, rng) for n, p in space.items() if not isinstance(p, Categorical)}
    active: Params = {n: x for n, x in numbers.items() if all(levels[parent] in of for parent, of in space[n].when)}
    return levels | active


def _draw(parameter: Float | Int, rng: np.random.Generator) -> float:
    if isinstance(parameter, Float):
        x = Scale(parameter.low, parameter.high, parameter.log, LOG_OFFSET).from_unit(rng.uniform())
        return float(np.clip(x, parameter.low, parameter.high))
    if not parameter.log:
        return int(rng.integers(parameter.low, parameter.high + 1))
    # Log-uniform over half a step more than the bounds, so that both ends get their share.
    return round(float(np.exp(rng.uniform(np.log(parameter.low - 0.499), np.log(parameter.high + 0.499)))))


def decode(name: str, row: list[float]) -> Params:
    """A row's configuration by the formula of PROVENANCE.md, to the last bit: sizes of sub-samples are steps."""
    space, variables = SPACES[name], DESCRIPTORS[name]["variables"]
    found = space.decode(row)
    for column, u in zip(space.columns, row, strict=True):
        parameter = space.get(column.name)
        if isinstance(parameter, Float) and column.name in found:
            low, high = (variables[column.name][end] for end in ("min", "max"))
            t = low + u * (high - low)
            x = np.exp(t) - LOG_OFFSET if parameter.log else t
            found[column.name] = float(np.clip(x, parameter.low, parameter.high))
    return found
