"""Objectives that tuners are compared on: models that are cross-validated live, and functions with a known optimum."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from live.functions import ackley, branin, hartmann

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
    from dre_jax.tuning.space.descriptors import from_descriptor

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


def _negated(f: Callable[[np.ndarray], np.ndarray], params: Mapping[str, Any]) -> float:
    return -float(f(np.array([list(params.values())]))[0])
