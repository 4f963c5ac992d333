"""The space and the surrogate of a search by a model's name, and by an estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from dre_jax.errors import ConfigError, DataWarning
from dre_jax.tuning.pretrained.families import FAMILIES, KnownModel, find_model
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.surrogate import Surrogate


def pretrained_study(name: str, metric: str | None, space: Space | None) -> tuple[Space, Surrogate | None]:
    """Returns the space to search and the surrogate of a model, which is None if the model or the metric is unknown.

    Args:
      name: of the model.
      metric: name of the score, or None.
      space: the one to search; None for the default of the model.

    Raises:
      ConfigError: without a space, for an unknown model.

    Warns:
      DataWarning: if the model or the metric is unknown.
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

    Args:
      estimator: a model, or a pipeline that ends with one.
      space: the one to search; None for the default of the model.
      scoring: name of the score, None for that of the estimator; anything else is unknown.

    Raises:
      ConfigError: without a space, for an unknown model.

    Warns:
      DataWarning: if the score is unknown, or, without a space, the estimator sets hyperparameters that are searched.
    """
    model = find_model(estimator)
    if model is None:
        if space is not None:
            return space, None
        rule = f"a search without a space is for the models {', '.join(FAMILIES)}"
        raise ConfigError(f"{rule}, but got {type(estimator).__name__}: pass a space")
    if space is None and (own := _set_values(model)):
        rule = f"the default space of {model.family.name} includes what the estimator sets, {', '.join(own)}"
        warnings.warn(f"{rule}: pass a space to keep these values", DataWarning, stacklevel=2)
    default = prefixed_space(model.family.space, model.prefix)
    if space is not None and default.mismatches(space):
        return space, None
    if scoring is None:
        scoring = "accuracy" if model.is_classifier else "r2"
    _, surrogate = pretrained_study(model.family.name, str(scoring), None)
    surrogate = None if surrogate is None else with_prefix(surrogate, model.prefix)
    return (default if space is None else space), surrogate


def _set_values(model: KnownModel) -> list[str]:
    """Returns the hyperparameters of the default space that an estimator has other values of than its class."""
    own, default = model.estimator.get_params(), type(model.estimator)().get_params()
    return [f"{name}={own[name]!r}" for name in model.family.space if own[name] != default[name]]


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
        name: [{prefix + parent: values for parent, values in conditions} for conditions in one.alternatives] or None
        for name, one in space.items()
    }
    return Space({prefix + name: replace(one, when=when[name]) for name, one in space.items()})
