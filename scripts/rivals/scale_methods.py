"""Methods for a new task among tasks with features. Each returns a rival; on a table, the nearest row is evaluated."""

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning import Allowed, Evaluated, Float, Optimizer, Space, Surrogate
from rivals.formulas import evaluate
from rivals.optuna_study import OptunaStudy
from rivals.ours import DreJax
from rivals.outcomes import scaled_regret
from rivals.problems import Problem, Rival, Table
from rivals.scale_tables import ScaleTables

_BEST = 5  # configurations of a past task through which the line goes


class Method(NamedTuple):
    """A method by its name in tables."""

    title: str
    packages: tuple[str, ...] = ()
    """What has to be installed, by the names that are imported."""


METHODS = {
    "features": Method("`hedged-prior`, with features"),
    "no-features": Method("`hedged-prior`, without features"),
    "average": Method("best on average over the past tasks"),
    "line": Method("line through the best of the past tasks"),
    "formula": Method("published formula"),
    "botorch": Method("BoTorch, `LCEMGP`, with features", ("botorch",)),
    "baybe": Method("BayBE, `TaskParameter`", ("baybe",)),
    "tpe-best": Method("Optuna, TPE, past's best enqueued"),
}


class Recommended(DreJax):
    """The recommended tuner for a task of known features, or without features."""

    def __init__(self, table: Table, surrogate: Surrogate, features: Mapping[str, float] | None, seed: int) -> None:
        space = Space(table.space, rules=[Allowed(table.rows)])
        self.optimizer = Optimizer(space, surrogate, direction="maximize", seed=seed, features=features)


class Ordered:
    """Suggests configurations in an order."""

    def __init__(self, configurations: Sequence[Params]) -> None:
        self.remaining = list(configurations)

    def ask(self) -> Params:
        return self.remaining.pop(0)

    def tell(self, params: Params, value: float) -> None:
        pass


class Target:
    """Suggests one configuration, so that the rows of a table are evaluated by their distance from it."""

    def __init__(self, params: Params) -> None:
        self.params = params

    def ask(self) -> Params:
        return self.params

    def tell(self, params: Params, value: float) -> None:
        pass


def make_rival(
    method: str, tables: ScaleTables, task: str, past: Sequence[str], formula: Mapping[str, str] | None, seed: int
) -> Rival:
    """Returns a method that knows the past tasks, for a new task. Imports the packages of the method."""
    table, features = tables.table(task), tables.features(task)
    if method in ("features", "no-features"):
        has_features = method == "features"
        surrogate = fit(tables, tuple(past), has_features)
        return Recommended(table, surrogate, features if has_features else None, seed)
    if method == "average":
        return Ordered([table.rows[row] for row in average_order(table, [tables.table(name) for name in past])])
    if method == "line":
        return Target(line_target(tables, past, task))
    if method == "formula":
        assert formula is not None
        return Target(formula_target(tables.space, formula, features))
    problem = Problem(tables.space, {name: trials_of(tables.table(name)) for name in past})
    if method == "baybe":
        from rivals.baybe_campaign import BaybeCampaign

        return BaybeCampaign(problem, table.rows, seed)
    if method == "botorch":
        from rivals.contextual_process import ContextualProcess

        return ContextualProcess(problem, table.rows, seed, features=tables.standardised_features(past, task))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an option of the sampler is experimental
        return OptunaStudy(problem, table.rows, seed, sampler="tpe", enqueue=True)


@lru_cache(maxsize=2)
def fit(tables: ScaleTables, past: tuple[str, ...], features: bool) -> Surrogate:
    """Returns the surrogate of past tasks, which new tasks share."""
    return Surrogate.fit(tables.past(past, features=features), quiet=True)


def trials_of(table: Table) -> list[Evaluated]:
    """Returns the rows of a table as trials."""
    return [Evaluated(params, float(value)) for params, value in zip(table.rows, table.values, strict=True)]


def average_order(table: Table, past: Sequence[Table]) -> np.ndarray:
    """Returns the numbers of the rows by their mean regret over past tasks, each at the row nearest to it."""
    regrets = []
    for other in past:
        regret = scaled_regret(other.values, float(other.values.max()), float(np.median(other.values)))
        left = np.ones(len(other.rows), bool)
        regrets.append([regret[other.nearest(params, left)] for params in table.rows])
    return np.argsort(np.mean(regrets, axis=0), kind="stable")


def line_target(tables: ScaleTables, past: Sequence[str], task: str) -> Params:
    """Returns the configuration at the features of a new task, on the line of least squares through past tasks.

    The line goes through the mean of the best five configurations of each task, in the units that the search has.
    """
    z, new = tables.standardised_features(past, task)
    studies = tables.past(past, features=False)
    orders = [(each.X, np.argsort(-each.y, kind="stable")) for each in studies.tasks.values()]
    best = np.stack([X[order[:_BEST]].mean(axis=0) for X, order in orders])
    coefficients = np.linalg.lstsq(np.c_[np.ones(len(z)), z], best, rcond=None)[0]
    return studies.space.decode(np.r_[1.0, new] @ coefficients)


def formula_target(space: Space, formula: Mapping[str, str], features: Mapping[str, float]) -> Params:
    """Returns the configuration of a formula, within the ranges of the space."""
    ranges = {name: (kind.low, kind.high) for name, kind in space.items() if isinstance(kind, Float)}
    return {name: float(np.clip(evaluate(formula[name], features), *limits)) for name, limits in ranges.items()}
