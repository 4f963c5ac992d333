"""The space and the surrogate of a search by a model's name, and by an estimator."""

import warnings
from dataclasses import replace
from typing import Any

from dre_jax.errors import ConfigError, DataWarning
from dre_jax.runtime.reports import say
from dre_jax.space.space import Space
from dre_jax.tuning.pretrained.families import FAMILIES, KnownModel, find_metric, find_model, nearest_metric
from dre_jax.tuning.surrogates.surrogate import Surrogate


def pretrained_study(name: str, metric: str | None, space: Space | None) -> tuple[Space, Surrogate | None]:
    """Returns the space to search and the surrogate of a model, which is None if the model or the metric is unknown.

    The space is by default that of the model. Raises `ConfigError` for an unknown model without a space, and warns with
    a `DataWarning` if the model or the metric is unknown.
    """
    try:
        surrogate = Surrogate.pretrained(name, metric)
    except ConfigError as error:
        if space is None and name not in FAMILIES:
            raise
        warnings.warn(f"{error}: the search starts without past tasks", DataWarning, stacklevel=2)
        return (FAMILIES[name].space if space is None else space), None
    return (surrogate.space if space is None else space), surrogate


def pretrained_search(estimator: Any, space: Space | None, scoring: Any) -> tuple[Space, Surrogate | None]:
    """Returns the space to search, and the surrogate of an estimator if one of its model and score knows the space.

    The estimator is a model, or a pipeline that ends with one; the space is by default that of the model. Scoring is
    the name of a score, a scorer, or None for the score of the estimator. A score without a surrogate takes that of the
    nearest metric, or the model's first one. A line on standard error says so.

    Raises `ConfigError` for an unknown model without a space. Warns with a `DataWarning` if the model has no surrogate
    of the score's metric, or if, without a space, the estimator sets hyperparameters that are searched.
    """
    model = find_model(estimator)
    if model is None:
        if space is not None:
            return space, None
        rule = f"a search without a space is for the models {', '.join(FAMILIES)}"
        raise ConfigError(f"{rule}, but got {type(estimator).__name__}: pass a space")
    if space is None and (preset_values := _set_values(model)):
        rule = f"the default space of {model.family.name} includes what the estimator sets, {', '.join(preset_values)}"
        warnings.warn(f"{rule}: pass a space to keep these values", DataWarning, stacklevel=2)
    default = prefixed_space(model.family.space, model.prefix)
    if space is not None and default.mismatches(space):
        return space, None
    name = model.family.name
    if not model.family.metrics:
        say(f"no past tasks of {name} ship: the search starts without past tasks")
        return (default if space is None else space), None
    metric = "accuracy" if model.is_classifier else "r2"
    score = metric if scoring is None else score_name(scoring)
    if find_metric(score) or nearest_metric(score):
        metric = score
    elif metric_of_default := find_metric(metric):
        say(f"no surrogate of {name} knows {score}: that of {metric_of_default.name} is used")
    _, surrogate = pretrained_study(name, metric, None)
    if surrogate is not None:
        # All scores of scikit-learn are maximised: a scorer of an error has its negative.
        surrogate = replace(with_prefix(surrogate, model.prefix), direction="maximize")
    return (default if space is None else space), surrogate


def score_name(scoring: Any) -> str:
    """Returns the name of a score: of its function, for a scorer of `sklearn.metrics.make_scorer`."""
    if isinstance(scoring, str):
        return scoring
    function = getattr(scoring, "_score_func", scoring)
    function = getattr(function, "func", function)  # of functools.partial
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _set_values(model: KnownModel) -> list[str]:
    """Returns the hyperparameters of the default space that an estimator sets to other values than its class."""
    params, default = model.estimator.get_params(), model.kind().get_params()
    return [f"{name}={params[name]!r}" for name in model.family.space if params[name] != default[name]]


def with_prefix(surrogate: Surrogate, prefix: str) -> Surrogate:
    """Returns a surrogate whose hyperparameters have a prefix, such as the name of a pipeline's step.

    Example:
      >>> list(with_prefix(Surrogate.pretrained("ridge"), "ridge__").space)
      ['ridge__alpha', 'ridge__fit_intercept']
    """
    start = tuple({prefix + name: value for name, value in params.items()} for params in surrogate.start)
    return replace(surrogate, space=prefixed_space(surrogate.space, prefix), start=start)


def prefixed_space(space: Space, prefix: str) -> Space:
    """Returns a space whose hyperparameters have a prefix."""
    when = {
        name: [{prefix + parent: values for parent, values in conditions} for conditions in entry.alternatives] or None
        for name, entry in space.items()
    }
    return Space({prefix + name: replace(entry, when=when[name]) for name, entry in space.items()})
