"""Families of models: names of their estimators, default search spaces and configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from dre_jax.data.files import parse_json
from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.space.json_format import from_json
from dre_jax.tuning.space.parameters import Int
from dre_jax.tuning.space.space import Params, Space

CLASS_METRICS = ("error", "log_loss", "auc")
NUMBER_METRICS = ("r2", "mae")


@dataclass(frozen=True, kw_only=True)
class Family:
    """A model with its default search space. No library of models is imported.

    Example:
      >>> FAMILIES["svc"].metrics
      ('error', 'log_loss', 'auc')
    """

    name: str
    parameters: dict[str, Any]
    """The search space, as JSON."""
    default: Params
    """The library's default configuration, or the nearest one in the space."""
    classifier: str | None = None
    """Module and class of the estimator for classes."""
    regressor: str | None = None
    """Module and class of the estimator for numbers."""
    excluded: Sequence[str] = ()
    """Metrics without a surrogate: on data sets left out, its first suggestion was behind the default."""
    budget: str | None = None
    """The hyperparameter that a fit's cost is proportional to, such as the number of trees."""

    @cached_property
    def space(self) -> Space:
        """The search space."""
        return from_json(self.parameters)

    def space_within(self, budget: int) -> Space:
        """Returns the search space with at most so many trees, rounds or iterations of a fit.

        Raises:
          ConfigError: for a model without them, or fewer than the space has at least.

        Example:
          >>> FAMILIES["xgboost"].space_within(100)["n_estimators"].high
          100
        """
        if self.budget is None:
            raise ConfigError(f"{self.name} has no number of trees, rounds or iterations, but got {budget=}")
        parameter = self.space[self.budget]
        assert isinstance(parameter, Int)
        if budget < parameter.low:
            raise ConfigError(f"{self.budget} of {self.name} is at least {parameter.low}, but got {budget=}")
        return Space({**self.space, self.budget: replace(parameter, high=min(budget, parameter.high))})

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that surrogates know; the first is the default."""
        every = (CLASS_METRICS if self.classifier else ()) + (NUMBER_METRICS if self.regressor else ())
        return tuple(metric for metric in every if metric not in self.excluded)


def pretrained_path(name: str, metric: str) -> Path:
    """Returns the file of a surrogate.

    Args:
      name: the family's.
      metric: one of the family's.

    Raises:
      DataError: if the package is imported from a zip archive, which has no files.
    """
    file = resources.files(__package__) / "surrogates" / f"{name}.{metric}.npz"
    if not isinstance(file, Path):
        raise DataError(f"pretrained surrogates need dre_jax to be installed as a folder, but it is in {file}")
    return file


def _read() -> dict[str, Family]:
    text = (resources.files(__package__) / "families.json").read_bytes()
    content = parse_json(text, "families.json")
    return {name: Family(name=name, parameters=one.pop("space"), **one) for name, one in content.items()}


FAMILIES = _read()
"""By name."""
