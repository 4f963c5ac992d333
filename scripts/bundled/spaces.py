"""The search spaces, and HPO-B's column encoding of their configurations, both ways.

A configuration is a dict from variable name to value; an inactive conditional variable is absent from it. Its row
holds the numeric columns, each conditional one with its `<name>.na` flag, then the categoricals' one-hot columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Value = float | int | str
Configuration = dict[str, Value]
Json = dict[str, Any]
LOG_OFFSET = 1e-4
"""HPO-B's `t = ln(x + 1e-4)`."""
DECIMALS = 4
"""Rows are rounded before they are evaluated, so that the stored row is the configuration that gave the response."""


@dataclass(frozen=True)
class Number:
    """A numeric hyperparameter in [low, high]; active only where the categorical `when[0]` has a level in `when[1]`."""

    name: str
    low: float
    high: float
    log: bool = False
    integer: bool = False
    when: tuple[str, tuple[str, ...]] | None = None

    def transform(self, value: float) -> float:
        return float(np.log(value + LOG_OFFSET)) if self.log else float(value)

    def encode(self, value: float) -> float:
        low, high = self.transform(self.low), self.transform(self.high)
        return (self.transform(value) - low) / (high - low)

    def decode(self, column: float) -> Value:
        low, high = self.transform(self.low), self.transform(self.high)
        t = low + column * (high - low)
        value = float(np.exp(t) - LOG_OFFSET) if self.log else t
        return round(value) if self.integer else float(np.clip(value, self.low, self.high))

    def sample(self, rng: np.random.Generator) -> Value:
        if not self.integer:
            return self.decode(rng.uniform())
        if not self.log:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        # log-uniform over [low - 1/2, high + 1/2), so that the two ends get their share
        return round(float(np.exp(rng.uniform(np.log(self.low - 0.499), np.log(self.high + 0.499)))))


@dataclass(frozen=True)
class Choice:
    """A categorical hyperparameter."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Space:
    name: str
    numbers: tuple[Number, ...]
    choices: tuple[Choice, ...]

    def columns(self) -> list[str]:
        """HPO-B's `variables_order`."""
        names = [name for n in self.numbers for name in ([n.name, f"{n.name}.na"] if n.when else [n.name])]
        return names + [f"{c.name}.ohe._{level}" for c in self.choices for level in c.levels]

    def sample(self, rng: np.random.Generator) -> Configuration:
        drawn: Configuration = {c.name: str(rng.choice(c.levels)) for c in self.choices}
        # every number is drawn, active or not, so that the stream does not depend on the levels
        numbers = {n.name: n.sample(rng) for n in self.numbers}
        return drawn | {n.name: numbers[n.name] for n in self.numbers if is_active(n, drawn)}

    def encode(self, configuration: Configuration) -> list[float]:
        row: list[float] = []
        for n in self.numbers:
            active = n.name in configuration
            row.append(round(n.encode(float(configuration[n.name])), DECIMALS) if active else 0.0)
            row += [float(not active)] if n.when else []
        return row + [float(configuration[c.name] == level) for c in self.choices for level in c.levels]

    def decode(self, row: list[float]) -> Configuration:
        values = dict(zip(self.columns(), row, strict=True))
        decoded: Configuration = {
            c.name: next(level for level in c.levels if values[f"{c.name}.ohe._{level}"] == 1.0) for c in self.choices
        }
        return decoded | {n.name: n.decode(values[n.name]) for n in self.numbers if is_active(n, decoded)}

    def descriptor(self) -> Json:
        """HPO-B's keys, and beside them what decoding needs: kind, bounds as declared, levels and conditions."""
        variables: Json = {}
        for n in self.numbers:
            variables[n.name] = _describe(n)
            if n.when:
                variables[f"{n.name}.na"] = {"kind": "missing-flag", "of": n.name, "min": 0.0, "max": 1.0}
        for c in self.choices:
            variables[c.name] = {"kind": "categorical", "categories": list(c.levels)}
        logs = [n.name for n in self.numbers if n.log]
        return {"variables": variables, "variables_to_apply_log": logs, "variables_order": self.columns()}


def is_active(number: Number, choices: Configuration) -> bool:
    return number.when is None or choices[number.when[0]] in number.when[1]


def _describe(n: Number) -> Json:
    bounds = {"min": n.transform(n.low), "max": n.transform(n.high), "min_before_tf": n.low, "max_before_tf": n.high}
    condition = {"condition": {"variable": n.when[0], "levels": list(n.when[1])}} if n.when else {}
    return {"kind": "integer" if n.integer else "numeric", **bounds, **condition}


SCALER = Choice("scaler", ("minmax", "rank", "standard"))

SVM = Space(
    "svm",
    (
        Number("C", 0.01, 1000.0, log=True),
        Number("gamma", 0.001, 10.0, log=True, when=("kernel", ("poly", "rbf", "sigmoid"))),
        Number("degree", 2, 5, integer=True, when=("kernel", ("poly",))),
        Number("coef0", 0.0, 2.0, when=("kernel", ("poly", "sigmoid"))),
    ),
    (Choice("kernel", ("linear", "poly", "rbf", "sigmoid")), SCALER),
)

RANDOM_FOREST = Space(
    "random-forest",
    (
        Number("n_estimators", 3, 60, log=True, integer=True),
        Number("max_depth", 1, 16, integer=True),
        Number("min_samples_leaf", 1, 32, log=True, integer=True),
        Number("max_features", 0.05, 1.0),
        Number("max_samples", 0.2, 1.0, when=("bootstrap", ("true",))),
    ),
    (Choice("bootstrap", ("false", "true")), Choice("splitter", ("best", "random"))),
)

GRADIENT_BOOSTING = Space(
    "gradient-boosting",
    (
        Number("learning_rate", 0.005, 1.0, log=True),
        Number("n_estimators", 5, 120, log=True, integer=True),
        Number("max_depth", 1, 6, integer=True),
        Number("min_samples_leaf", 1, 32, log=True, integer=True),
        Number("subsample", 0.3, 1.0),
        Number("max_features", 0.1, 1.0),
        Number("n_iter_no_change", 1, 20, log=True, integer=True, when=("early_stopping", ("on",))),
        Number("validation_fraction", 0.1, 0.4, when=("early_stopping", ("on",))),
    ),
    (Choice("early_stopping", ("off", "on")), Choice("init", ("prior", "zero"))),
)

NEAREST_NEIGHBOURS = Space(
    "nearest-neighbours",
    (
        Number("n_neighbors", 1, 50, log=True, integer=True),
        Number("p", 1.0, 5.0, when=("metric", ("minkowski",))),
        Number("n_components", 0.1, 1.0, when=("projection", ("pca",))),
    ),
    (
        Choice("metric", ("cosine", "minkowski")),
        Choice("projection", ("none", "pca")),
        SCALER,
        Choice("weights", ("distance", "uniform")),
    ),
)

SPACES = {space.name: space for space in (SVM, RANDOM_FOREST, GRADIENT_BOOSTING, NEAREST_NEIGHBOURS)}
