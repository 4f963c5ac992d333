"""Objectives that tuners are compared on: models that are cross-validated live, and functions with a known optimum."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dre_jax.tuning import Float, Space

sys.path.insert(0, str(Path(__file__).parents[1]))

PROBLEMS = {
    "svm": ("wine-by-minerals", "wine-alcalinity", "digits-8v9-r47-c47", "diabetes-glucose"),
    "random-forest": ("wine-0v1-by-hue", "wine-proline", "cancer-diagnosis-by-worst-shape", "diabetes-glucose"),
    "gradient-boosting": ("wine-by-minerals", "wine-proline", "cancer-texture-error", "diabetes-glucose"),
    "nearest-neighbours": ("wine-0v1-by-hue", "wine-alcalinity", "digits-6v8v9-r24-c07by2", "cancer-texture-error"),
}
"""Test problems of the bundled data by model: no rows of theirs are in a training task."""


class Objective(NamedTuple):
    """Something to tune; higher is better."""

    name: str
    space: Space
    model: str | None
    """The bundled search space that it is of, if any."""
    evaluate: Callable[[Mapping[str, Any]], float]


def objectives(names: list[str]) -> list[Objective]:
    """Those of groups, "live", "validation" and "functions", or by their own names."""
    known = {one.name: one for group in ("test", "validation") for one in live(group)} | functions()
    groups = {
        "live": [one.name for one in live("test") if one.name.split("/")[1] in PROBLEMS[one.model or ""]],
        "validation": [one.name for one in live("validation")],
        "functions": list(functions()),
    }
    return [known[name] for given in names for name in groups.get(given, [given])]


@cache
def live(split: str) -> list[Objective]:
    """Every bundled model on every problem of a split."""
    from bundled.scoring import response
    from bundled.tasks import problems

    from dre_jax.data import bundled

    found = []
    for model in bundled.spaces():
        space = space_of(model)
        for problem in problems()[split]:
            seen: dict[str, float] = {}

            def evaluate(
                params: Mapping[str, Any], model: str = model, problem: Any = problem, seen: dict[str, float] = seen
            ) -> float:
                key = repr(sorted(params.items()))
                if key not in seen:
                    seen[key] = response(model, dict(params), problem)
                return seen[key]

            found.append(Objective(f"{model}/{problem.name}", space, model, evaluate))
    return found


def space_of(model: str) -> Space:
    """The search space of a bundled model."""
    from dre_jax.data import bundled
    from dre_jax.data.columns import read_descriptor
    from dre_jax.tuning.descriptors import from_descriptor

    descriptor = read_descriptor(bundled.path(), model)
    assert descriptor is not None
    return from_descriptor(descriptor)


def functions() -> dict[str, Objective]:
    """Branin, Hartmann 6 and Ackley 10, negated."""
    six = {f"x{i}": Float(0.0, 1.0) for i in range(6)}
    ten = {f"x{i}": Float(-32.768, 32.768) for i in range(10)}
    two = {"x0": Float(-5.0, 10.0), "x1": Float(0.0, 15.0)}
    made = {"branin": (two, branin), "hartmann-6": (six, hartmann), "ackley-10": (ten, ackley)}
    return {name: Objective(name, Space(space), None, partial(_negated, f)) for name, (space, f) in made.items()}


def _negated(f: Callable[[np.ndarray], float], params: Mapping[str, Any]) -> float:
    return -f(np.array(list(params.values())))


def branin(x: np.ndarray) -> float:
    """Least 0.397887 (Dixon and Szego 1978)."""
    a, b = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6, 10 * (1 - 1 / (8 * math.pi))
    return float(a**2 + b * math.cos(x[0]) + 10)


def ackley(x: np.ndarray) -> float:
    """Least 0 at the origin."""
    root, mean = math.sqrt((x**2).mean()), np.cos(2 * math.pi * x).mean()
    return float(-20 * math.exp(-0.2 * root) - math.exp(mean) + 20 + math.e)


def hartmann(x: np.ndarray) -> float:
    """Least -3.32237 (Dixon and Szego 1978)."""
    alpha = np.array([1.0, 1.2, 3.0, 3.2])
    a = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )
    p = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    return float(-(alpha * np.exp(-(a * (x[None, :] - p) ** 2).sum(axis=1))).sum())
