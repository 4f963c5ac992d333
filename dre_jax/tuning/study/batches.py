"""Batches of trials: a large batch takes several trials from each fit of the method, apart from each other."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.space.space import Params, Space
from dre_jax.tuning.engine.engine import Suggestion

_FITS = 10
"""Number of fits of the method for a batch. Each fit imputes the earlier trials of the batch."""
_APART = 0.1
"""Minimum distance of configurations from one fit, in the column of the unit cube in which they differ most."""


def suggest_batch(
    space: Space,
    suggest: Callable[[Sequence[Params], Params | None, bool], Suggestion],
    enqueued: Sequence[Params],
    running: Callable[[], Sequence[Mapping[str, Any]]],
    n: int | None,
) -> tuple[list[Params], list[float]]:
    """Returns the configurations of the next n trials, and their expected improvements, infinite where unknown.

    Args:
      space: of the configurations.
      suggest: returns the suggestion after a batch, with values that it must have or None, and with or without
        further configurations.
      enqueued: values of the first trials.
      running: returns the configurations of running trials.
      n: number of trials, with different configurations; None for one, which may repeat another.

    Raises:
      ConfigError: if the space has too few configurations that are not running.
    """
    batch, improvements = list[Params](), list[float]()
    n_enqueued = len(enqueued)
    while len(batch) < (n or 1):
        is_enqueued = len(batch) < n_enqueued
        size = 1 if is_enqueued else min(math.ceil((n or 1) / _FITS), (n or 1) - len(batch))
        suggestion = suggest(batch, enqueued[len(batch)] if is_enqueued else None, size > 1)
        if n is not None and not is_enqueued and suggestion.params in [*batch, *running()]:
            rule = f"ask({n}) needs {n} different configurations that are not running"
            remedy = f"ask for {len(batch)}" if batch else "tell a running trial first"
            raise ConfigError(f"{rule}, but the space has {len(batch)}: {remedy}, or repeat one with ask()")
        group = distant_configurations(space, suggestion, size)
        batch += group
        improvements += [math.inf if suggestion.improvement is None else suggestion.improvement] * len(group)
    return batch, improvements


def distant_configurations(space: Space, suggestion: Suggestion, n: int) -> list[Params]:
    """Returns up to n configurations of a suggestion that are apart from better ones, the best first.

    Example:
      >>> from dre_jax.tuning import Float
      >>> further = {"x": 0.51}, {"x": 0.7}, {"x": 0.75}, {"x": 0.2}
      >>> distant_configurations(Space({"x": Float(0.0, 1.0)}), Suggestion({"x": 0.5}, further=further), 3)
      [{'x': 0.5}, {'x': 0.7}, {'x': 0.2}]
    """
    if not suggestion.further:
        return [suggestion.params]
    configurations, columns = [suggestion.params], [space.encode(suggestion.params)]
    for params in suggestion.further:
        if len(configurations) == n:
            break
        encoded_params = space.encode(params)
        if np.abs(np.array(columns) - encoded_params).max(axis=1).min() > _APART:
            configurations.append(params)
            columns.append(encoded_params)
    return configurations
