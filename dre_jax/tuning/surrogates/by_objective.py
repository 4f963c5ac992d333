"""The surrogates of a study, one for each objective, for the features of its task."""

from collections.abc import Mapping
from typing import Any

from dre_jax.data.features import FeatureValue, plain_features
from dre_jax.errors import DataError
from dre_jax.tuning.surrogates.new_task import warn_of_missing
from dre_jax.tuning.surrogates.surrogate import Surrogate


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
    if features is None:
        general = [
            surrogate for surrogate in fitted.values() if surrogate.uses_features and surrogate.task_features is None
        ]
        warn_of_missing([name for surrogate in general for name in surrogate.feature_names], stacklevel=4)
        of_tasks = [surrogate.task_features or {} for surrogate in fitted.values()]
        return dict(surrogates), {name: value for known in of_tasks for name, value in known.items()}
    values = plain_features(features)
    known = dict.fromkeys(name for surrogate in fitted.values() for name in surrogate.feature_names)
    if known and (unknown := next((name for name in values if name not in known), None)):
        raise DataError(f"features of the task are of {', '.join(known)}, but got {unknown!r}")
    result = dict(surrogates)
    for name, surrogate in fitted.items() if values else ():
        names = surrogate.feature_names if known else values
        known_values = {feature: value for feature, value in values.items() if feature in names}
        result[name] = surrogate.for_task(known_values) if known_values else surrogate
    return result, values
