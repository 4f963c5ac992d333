"""Families of problems of two and three objectives to minimise, a member of which is a task.

Functions are ZDT (Zitzler, Deb and Thiele 2000) and DTLZ (Deb et al. 2002) with six hyperparameters: a member moves the
optimum of the distance variables, and scales each objective. Models are scikit-learn's, fitted while they are tuned, by
error and size: members of the past are training problems (`bundled.tasks`), and new ones are test problems.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from bundled.scoring import MODELS, response
from bundled.spaces import SPACES, sample
from bundled.tasks import Problem, test_problems, train_problems

from dre_jax.search.hypervolume import Floats, dominates
from dre_jax.tuning import Float, Space
from dre_jax.tuning.space.space import Params

SIZE = 6
SPACE = Space({f"x{i}": Float(0.0, 1.0) for i in range(SIZE)})
_REFERENCE_POINTS = 256


class Member(NamedTuple):
    """A task of several objectives."""

    space: Space
    values: Callable[[Sequence[Params]], Floats]
    """Of n configurations, f64[n, M], to minimise."""
    front: Callable[[], Floats]
    """Values f64[k, M], none better in all objectives than another: the true front, or that of random ones."""


def zdt(shape: Callable[[Floats, Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """A problem of positions f64[n, 1] and distances f64[n, K] from the optimum, two objectives to minimise."""

    def values(position: Floats, distance: Floats) -> Floats:
        g = 1.0 + 9.0 * distance.mean(axis=1)
        return np.stack([position[:, 0], g * shape(position[:, 0], position[:, 0] / g)], axis=1)

    return values


def dtlz2(position: Floats, distance: Floats) -> Floats:
    """Three objectives; the front is an eighth of a sphere."""
    a, b = 0.5 * np.pi * position.T
    unit = np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], axis=1)
    return (1.0 + (distance**2).sum(axis=1))[:, None] * unit


def dtlz7(position: Floats, distance: Floats) -> Floats:
    """Three objectives; the front has four parts."""
    g = 2.0 + 9.0 * distance.mean(axis=1)
    h = 3.0 - (position / g[:, None] * (1.0 + np.sin(3.0 * np.pi * position))).sum(axis=1)
    return np.column_stack([position, g * h])


PROBLEMS: dict[str, tuple[Callable[[Floats, Floats], Floats], int]] = {
    "zdt1": (zdt(lambda x, share: 1.0 - np.sqrt(share)), 1),
    "zdt2": (zdt(lambda x, share: 1.0 - share**2), 1),
    "zdt3": (zdt(lambda x, share: 1.0 - np.sqrt(share) - share * np.sin(10.0 * np.pi * x)), 1),
    "dtlz2": (dtlz2, 2),
    "dtlz7": (dtlz7, 2),
}
"""Objectives of positions and distances, and the number of position variables."""
MODEL_FAMILIES = ("gradient-boosting", "random-forest")
"""By error and number of leaves; by error and nodes that predictions visit."""


def draw_member(family: str, random: np.random.Generator, *, past: bool) -> Member:
    """Draws a member of a family of functions or models."""
    if family not in MODEL_FAMILIES:
        return _draw_function(family, random)
    problems = train_problems() if past else test_problems()
    problem = problems[random.integers(len(problems))]
    values = partial(_model_values, family, problem)
    return Member(SPACES[family], values, lambda: _random_front(family, problem.name))


def _draw_function(name: str, random: np.random.Generator) -> Member:
    function, split = PROBLEMS[name]
    optimum, scale = random.uniform(0.2, 0.5, SIZE - split), random.uniform(0.7, 1.4, split + 1)

    def values(x: Floats) -> Floats:
        return scale * function(x[:, :split], np.abs(x[:, split:] - optimum))

    def front() -> Floats:
        axis = np.linspace(0.0, 1.0, {1: 1000, 2: 40}[split])
        position = np.stack([one.ravel() for one in np.meshgrid(*[axis] * split)], axis=1)
        return _not_dominated(values(np.hstack([position, np.tile(optimum, (len(position), 1))])))

    return Member(SPACE, lambda params: values(np.array([[one[x] for x in SPACE] for one in params])), front)


def _model_values(family: str, problem: Problem, params: Sequence[Params]) -> Floats:
    """The loss of `bundled.scoring.response`, and the common logarithm of the size, f64[n, 2]."""
    return np.array([(1.0 - response(family, one, problem), _log_size(family, one, problem)) for one in params])


def _log_size(family: str, params: Params, problem: Problem) -> float:
    model: Any = MODELS[family](params, problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(problem.features, problem.target[:, 0])
    trees = np.ravel(model.estimators_)
    if family == "random-forest":  # nodes that a prediction visits, which are its time
        return float(np.log10(sum(tree.decision_path(problem.features).sum() for tree in trees)))
    return float(np.log10(sum(tree.get_n_leaves() for tree in trees)))


@cache
def _random_front(family: str, problem_name: str) -> Floats:
    problem = next(one for one in test_problems() if one.name == problem_name)
    params = draw_params(SPACES[family], _REFERENCE_POINTS, np.random.default_rng(0))
    return _not_dominated(_model_values(family, problem, params))


def _not_dominated(values: Floats) -> Floats:
    return values[~dominates(-values).any(axis=0)]


def draw_params(space: Space, n: int, random: np.random.Generator) -> list[Params]:
    """Draws configurations."""
    if space is SPACE:
        return [dict(zip(space, row, strict=True)) for row in random.uniform(size=(n, SIZE)).tolist()]
    return [sample(space, random) for _ in range(n)]
