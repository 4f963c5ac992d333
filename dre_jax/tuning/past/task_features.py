"""Features of past tasks: which of them a surrogate can learn from, and their encoding."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.data.checks import show
from dre_jax.data.features import (
    Choice,
    FeatureSpace,
    FeatureType,
    Linear,
    Log,
    checked_number,
    choice_text,
    infer_type,
    is_unknown,
    number_of,
)
from dre_jax.data.spaces import Task
from dre_jax.errors import ConfigError, DataError

MIN_TASKS = 3
"""Minimum number of past tasks of which a feature must be known."""


class PastFeatures(NamedTuple):
    """Encoded features of past tasks."""

    space: FeatureSpace | None
    """None if there is no feature to learn from."""
    rows: dict[str, npt.NDArray[np.float32]]
    """f32[P] by task; empty without a space."""
    unused: dict[str, str]
    """Reasons by feature why it is not used."""


def encode_features(
    features: Mapping[str, Mapping[str, Any]], types: Mapping[str, FeatureType], tasks: Iterable[str]
) -> PastFeatures:
    """Returns the features of past tasks.

    Args:
      features: features by task, of some of the tasks or of others too.
      types: descriptions of some features.
      tasks: the past tasks.

    Raises:
      ConfigError: for a description that is none, or of a feature that no task has.
      DataError: for a number that is text, infinite, or not positive on a log scale.
    """
    tasks = list(tasks)
    names = list(dict.fromkeys(str(name) for values in features.values() for name in values))
    check_types(types, names)
    space_types, ranges, unused = dict[str, FeatureType](), dict[str, tuple[float, float]](), dict[str, str]()
    for name in names:
        values = {task: features[task][name] for task in tasks if name in features.get(task, ())}
        values = {task: value for task, value in values.items() if not is_unknown(value)}
        if reason := _unusable(values):
            unused[name] = reason
            continue
        kind = types[name] if name in types else infer_type(name, values)
        if isinstance(kind, Choice):
            space_types[name] = kind if kind.choices else Choice(list(values.values()))
        else:
            numbers = [_number_of_task(name, kind, task, value) for task, value in values.items()]
            space_types[name], ranges[name] = kind, (min(numbers), max(numbers))
    if not space_types:
        return PastFeatures(None, {}, unused)
    space = FeatureSpace(space_types, ranges)
    known = {task: {name: features[task].get(name) for name in space_types} for task in tasks if task in features}
    return PastFeatures(space, {task: space.encode(known.get(task, {})) for task in tasks}, unused)


def check_types(types: Mapping[str, FeatureType], names: Collection[str]) -> None:
    """Raises `ConfigError` for descriptions that are none, or of other names."""
    if not isinstance(types, Mapping):
        raise ConfigError(f"feature_types must map features to Log(), Linear() or Choice(), but got {show(types)}")
    for name, kind in types.items():
        if not isinstance(kind, (Log, Linear, Choice)):
            raise ConfigError(f"the type of feature {name!r} must be Log(), Linear() or Choice(), but got {show(kind)}")
        if name not in names:
            raise ConfigError(f"feature_types describe {', '.join(names) or 'no feature'}, but got {name!r}")


def check_features(features: Any, tasks: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Returns features by task. Raises `DataError` for anything but mappings by the names of tasks."""
    if not isinstance(features, Mapping):
        raise DataError(f"features must map past tasks to their features, but got {show(features)}")
    for task, values in features.items():
        if str(task) not in tasks:
            raise DataError(f"features must be of past tasks, but {str(task)!r} is none of {', '.join(tasks)}")
        if not isinstance(values, Mapping):
            raise DataError(f"features of past task {str(task)!r} must map names to values, but got {show(values)}")
    return {str(task): values for task, values in features.items()}


def feature_names(names: Any) -> list[str]:
    """Returns the names of features, None is no name. Raises `ConfigError` for anything but a sequence of texts."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names or ()):
        raise ConfigError(f"features must be a list of names, but got {show(names)}")
    return list(dict.fromkeys(names or ()))


def constant_value(task: str, column: str, cells: Iterable[Any]) -> Any:
    """Returns the value that the cells of a task have in common, None if all are empty.

    Raises `DataError` if two cells differ; the message begins with the task.

    Example:
      >>> constant_value("task 'a'", "rows", ["100", None, 100.0]), constant_value("task 'a'", "rows", [None])
      ('100', None)
    """
    known = [cell for cell in cells if not is_unknown(cell)]
    if not known:
        return None
    first = known[0]
    if other := next((cell for cell in known if _identity(cell) != _identity(first)), None):
        rule = "a feature must be constant within a task"
        raise DataError(f"{task}: {rule}, but column {column!r} has {first!r} and {other!r}")
    return first


def _identity(cell: Any) -> float | str:
    number = number_of(cell)
    return choice_text(cell) if number is None else number


def _unusable(values: Mapping[str, Any]) -> str | None:
    """Returns why a feature with these known values by task is not used, or None."""
    if len(values) < MIN_TASKS:
        noun = "task" if len(values) == 1 else "tasks"
        return f"it must be known of at least {MIN_TASKS} past tasks, but is of {len(values)} {noun}"
    if len({_identity(value) for value in values.values()}) < 2:
        return f"it must differ between past tasks, but is {show(next(iter(values.values())))} in all"
    return None


def _number_of_task(name: str, kind: FeatureType, task: str, value: Any) -> float:
    try:
        number = checked_number(name, kind, value)
    except DataError as error:
        raise DataError(f"past task {task!r}: {error}") from None
    assert number is not None  # unknown values are left out
    return number


def describe_features(space: FeatureSpace | None, tasks: Iterable[Task], unused: Mapping[str, str]) -> str:
    """Returns one line about features that are not used or not known of all past tasks; empty if there are none.

    Example:
      >>> space, x, y = FeatureSpace({"rows": Log()}, {"rows": (10.0, 1e3)}), np.zeros((1, 1)), np.zeros(1)
      >>> tasks = [Task(name, x, y, features=np.array([row])) for name, row in {"a": 1.0, "b": np.nan}.items()]
      >>> describe_features(space, tasks, {"gpu": "it must differ"})
      "1 of 2 past tasks has no feature 'rows'; feature 'gpu' is not used: it must differ"
    """
    phrases = []
    if space is not None:
        is_missing = np.isnan([task.features for task in tasks if task.features is not None])
        for name in space.types:
            columns = [i for i, column in enumerate(space.columns) if column.feature == name]
            n = int(is_missing[:, columns].all(axis=1).sum())
            verb = "has" if n == 1 else "have"
            phrases += [f"{n} of {len(is_missing)} past tasks {verb} no feature {name!r}"] if n else []
    phrases += [f"feature {name!r} is not used: {reason}" for name, reason in unused.items()]
    return "; ".join(phrases)
