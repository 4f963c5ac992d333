"""Families of models, their default search spaces and configurations, and what estimators and scores are of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dre_jax.data.files import parse_json
from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.space.json_format import from_json
from dre_jax.tuning.space.parameters import Int
from dre_jax.tuning.space.space import Params, Space

CLASS_METRICS = ("error", "log_loss", "auc")
NUMBER_METRICS = ("r2", "mae")
_HIGHER = {"accuracy": "error", "roc_auc": "auc", "auc": "auc", "r2": "r2"}
_HIGHER |= {f"roc_auc_{kind}{weights}": "auc" for kind in ("ovr", "ovo") for weights in ("", "_weighted")}
_HIGHER |= {"neg_log_loss": "log_loss", "neg_mean_absolute_error": "mae"}
_HIGHER |= {"neg_mean_squared_error": "r2", "neg_root_mean_squared_error": "r2"}
_LOWER = {"error": "error", "error_rate": "error", "log_loss": "log_loss", "logloss": "log_loss"}
_LOWER |= {"mae": "mae", "mean_absolute_error": "mae", "mse": "r2", "rmse": "r2", "mean_squared_error": "r2"}


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


class KnownMetric(NamedTuple):
    """A metric of the shipped surrogates."""

    name: str
    """The metric that the surrogate learned. A squared error orders configurations as R2 does."""
    direction: str
    """The direction of the score, "minimize" or "maximize"."""


class KnownModel(NamedTuple):
    """The model in an estimator."""

    estimator: Any
    family: Family
    is_classifier: bool
    prefix: str
    """What precedes its parameters in `set_params`: the names of a pipeline's steps."""


def find_metric(name: str) -> KnownMetric | None:
    """Returns the metric of a score by its name in scikit-learn or a usual one; None if it is unknown.

    Example:
      >>> find_metric("neg_log_loss")
      KnownMetric(name='log_loss', direction='maximize')
    """
    if name in _HIGHER:
        return KnownMetric(_HIGHER[name], "maximize")
    return KnownMetric(_LOWER[name], "minimize") if name in _LOWER else None


def find_model(estimator: Any) -> KnownModel | None:
    """Returns the model of an estimator, or of a pipeline's last step; None if it is unknown."""
    prefix = ""
    while type(estimator).__name__ == "Pipeline" and getattr(estimator, "steps", None):
        step, estimator = estimator.steps[-1]
        prefix += f"{step}__"
    kind = type(estimator)
    for family in FAMILIES.values():
        for path in (family.classifier, family.regressor):
            # Libraries move classes between modules, but not out of their package.
            if path and (path.partition(".")[0], path.rpartition(".")[2]) == (
                kind.__module__.partition(".")[0],
                kind.__name__,
            ):
                return KnownModel(estimator, family, path == family.classifier, prefix)
    return None
