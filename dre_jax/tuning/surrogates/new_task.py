"""Surrogates for a new task whose features are known."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from dre_jax.data.features import FeatureValue, plain_features
from dre_jax.errors import DataError, DataWarning
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.progress import say
from dre_jax.search.method import FeatureMethod

if TYPE_CHECKING:
    from dre_jax.tuning.surrogates.surrogate import Surrogate


def surrogate_for_task(surrogate: Surrogate, features: Mapping[str, Any], *, stacklevel: int = 3) -> Surrogate:
    """Returns the surrogate for a new task of known features, see `Surrogate.for_task`."""
    general, values = surrogate.general or surrogate, plain_features(features)
    method = general.method
    if general.features is None or not isinstance(method, FeatureMethod):
        who = "the surrogate knows no features of past tasks"
        who = who if general.features is None else f"{general.name} does not use features of tasks"
        warnings.warn(f"{who}: {', '.join(values) or 'they'} count for nothing", DataWarning, stacklevel=stacklevel)
        return general
    row = general.features.encode(values)
    if missing := [name for name in general.features.types if name not in values]:
        _warn_of_missing(missing, stacklevel + 1)
    for line in general.features.extrapolations(values):
        say(line)
    with suggestion_runtime, jax.enable_x64(False):
        params = jax.tree.map(np.asarray, method.for_task(general.params, jax.device_put(row)))
    start = general.start if np.isnan(row).all() else ()
    return replace(general, params=params, start=start, task_features=values, general=general)


def surrogates_for_task(
    surrogates: Mapping[str, Surrogate | None], features: Mapping[str, Any] | None
) -> tuple[dict[str, Surrogate | None], dict[str, FeatureValue]]:
    """Returns the surrogates of a study by objective, for its task, and the features of the task.

    Without features, they are those that the surrogates are for already, see `Surrogate.for_task`.

    Raises:
      DataError: for a feature that no surrogate knows, though one knows others; and as `Surrogate.for_task`.

    Warns:
      DataWarning: without features, if a surrogate uses some; and as `Surrogate.for_task`.
    """
    fitted = {name: surrogate for name, surrogate in surrogates.items() if surrogate is not None}
    known = dict.fromkeys(name for one in fitted.values() if one.features is not None for name in one.features.types)
    if features is None:
        general = [one for one in fitted.values() if one.uses_features and one.task_features is None]
        if missing := dict.fromkeys(name for one in general if one.features is not None for name in one.features.types):
            _warn_of_missing(list(missing), 5)
        values = dict[str, FeatureValue]()
        for one in fitted.values():
            values |= one.task_features or {}
        return dict(surrogates), values
    values = plain_features(features)
    if known and (unknown := next((name for name in values if name not in known), None)):
        raise DataError(f"features of the task are of {', '.join(known)}, but got {unknown!r}")
    result = dict(surrogates)
    for name, surrogate in fitted.items() if values else ():
        mine = (
            values
            if surrogate.features is None
            else {feature: value for feature, value in values.items() if feature in surrogate.features.types}
        )
        result[name] = surrogate_for_task(surrogate, mine, stacklevel=5) if mine else surrogate
    return result, values


def _warn_of_missing(names: list[str], stacklevel: int) -> None:
    """Warns that the past tasks have features that the caller did not pass."""
    remedy = f"pass features={{{names[0]!r}: ...}}, or None if it is unknown"
    message = f"the past tasks have features that the task lacks, {', '.join(names)}: {remedy}"
    warnings.warn(message, DataWarning, stacklevel=stacklevel)
