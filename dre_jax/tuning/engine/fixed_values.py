"""Suggestions of configurations of which some values are fixed."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from dre_jax.errors import DataError
from dre_jax.tuning.engine.engine import Engine, Suggestion
from dre_jax.tuning.trials.trial import Trial


def propose_with(
    engine: Engine, trials: Sequence[Trial], fixed: Mapping[str, Any] | None, **options: Any
) -> Suggestion:
    """Returns the next configuration, which has fixed values to the last digit; a whole configuration as it is.

    Args:
      engine: that suggests the rest.
      trials: of the study.
      fixed: values by name; None for none.
      options: further arguments of `Engine.propose`.
    """
    if fixed is None:
        return engine.propose(trials, **options)
    with contextlib.suppress(DataError):  # a part of a configuration
        return Suggestion(engine.space.check(fixed), origin="given")
    suggestion = engine.propose(trials, fixed=fixed, **options)
    own_values = {name: value for name, value in fixed.items() if name in suggestion.params}
    return suggestion._replace(params=suggestion.params | own_values)
