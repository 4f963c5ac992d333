"""Budgets of estimators: the fidelity of a search, and how the training of a configuration goes on."""

from collections.abc import Mapping
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline

from dre_jax.errors import ConfigError
from dre_jax.space.space import Space
from dre_jax.tuning.fidelity.fidelity import Fidelity

ROWS = "n_samples"
"""Name of the fidelity of rows of data, which is no parameter of an estimator."""
_LOWEST_SHARE = 1 / 8
"""Of the highest budget: with halves, a configuration pauses three times."""


def find_fidelity(fidelity: Fidelity | str, estimator: Any, space: Space | None, n_rows: int) -> Fidelity:
    """Returns the fidelity of a search, by default from an eighth of a parameter or of the rows to all of it.

    Args:
      fidelity: itself, or the name of a parameter of the estimator or `ROWS`.
      estimator: that is tuned.
      space: that is searched, if it is known.
      n_rows: of the largest training fold.

    Raises:
      ConfigError: if the fidelity is no parameter, is searched too, has budgets that are no whole numbers or that have
        more rows than the data, or has no positive value in the estimator.
    """
    name = fidelity.name if isinstance(fidelity, Fidelity) else fidelity
    params = estimator.get_params() | {ROWS: n_rows}
    if space is not None and name in space:
        raise ConfigError(f"the fidelity {name!r} must not be searched: pass a space without it")
    if name not in params:
        raise ConfigError(f"a fidelity must be a parameter of the estimator or {ROWS!r}, but got {name!r}")
    if isinstance(fidelity, Fidelity):
        if not all(isinstance(budget, int) for budget in fidelity.budgets):
            raise ConfigError(f"the budgets of {name!r} must be whole numbers, but got {fidelity.budgets}")
        if name == ROWS and fidelity.highest > n_rows:
            rule = f"the highest budget of {ROWS!r} must be at most the {n_rows} rows of the largest training fold"
            raise ConfigError(f"{rule}, but got {fidelity.highest}")
        return fidelity
    highest = params[name]
    if isinstance(highest, bool) or not isinstance(highest, int) or highest < 2:
        rule = f"the estimator's {name!r} must be a whole number above 1, to be the highest budget"
        raise ConfigError(f"{rule}, but is {highest!r}: pass a Fidelity")
    return Fidelity(name, max(round(highest * _LOWEST_SHARE), 1), highest)


def trained_part(estimator: Any, name: str) -> tuple[Any, str]:
    """Returns the part of an estimator that has a parameter, and the parameter's name in it.

    The part is None unless `fit` of the estimator trains it in place: the estimator, or the last step of a pipeline.
    """
    *path, parameter = name.split("__")
    for step in path:
        if not isinstance(estimator, Pipeline) or estimator.steps[-1][0] != step:
            return None, parameter
        estimator = estimator.steps[-1][1]
    return estimator, parameter


def can_continue(estimator: Any, name: str) -> bool:
    """Returns whether a trained estimator goes on with a larger budget, by its ``warm_start``.

    `SGDClassifier` and its relatives do not: their warm start begins the schedule of the learning rate anew. Neither
    does the solver "liblinear", which has none, nor an estimator with an out-of-bag score, which bagging refuses.

    Example:
      >>> from sklearn.ensemble import RandomForestClassifier
      >>> can_continue(RandomForestClassifier(), "n_estimators"), can_continue(RandomForestClassifier(), "max_depth")
      (True, False)
    """
    part, parameter = trained_part(estimator, name)
    if part is None or not hasattr(part, "warm_start") or getattr(part, "oob_score", False):
        return False
    if parameter == "n_estimators":
        return True
    has_schedule = hasattr(part, "partial_fit") and not isinstance(part, (MLPClassifier, MLPRegressor))
    return parameter == "max_iter" and not has_schedule and getattr(part, "solver", None) != "liblinear"


def continue_training(estimator: Any, name: str, budget: int, reached: int, data: tuple[Any, ...], params: Any) -> None:
    """Trains a trained estimator from one budget to a higher one; its parameters are then those of the higher one.

    Args:
      estimator: one that `can_continue`.
      name: of the parameter that is the budget.
      budget: to reach.
      reached: the budget of the training so far.
      data: arguments of `fit`.
      params: its keyword arguments.
    """
    part, parameter = trained_part(estimator, name)
    counts_all = parameter == "n_estimators" or isinstance(part, _COUNTS_ALL)
    warm_start = part.warm_start
    part.set_params(warm_start=True, **{parameter: budget if counts_all else budget - reached})
    try:
        estimator.fit(*data, **params)
    finally:
        part.set_params(warm_start=warm_start, **{parameter: budget})


_COUNTS_ALL = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
"""Whose ``max_iter`` counts the iterations of the model; that of others counts those of a call of `fit`."""


def with_budget(candidate: Mapping[str, Any], fidelity: Fidelity, budget: float) -> dict[str, Any]:
    """Returns the parameters of a candidate that trains until a budget."""
    return dict(candidate) | ({} if fidelity.name == ROWS else {fidelity.name: budget})
