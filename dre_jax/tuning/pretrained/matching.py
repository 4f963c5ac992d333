"""Families of estimators, and metrics of scores, by their names. No library of models is imported."""

from __future__ import annotations

from typing import Any, NamedTuple

from dre_jax.tuning.pretrained.families import FAMILIES, Family

_HIGHER = {"accuracy": "error", "roc_auc": "auc", "auc": "auc", "r2": "r2"}
_HIGHER |= {f"roc_auc_{kind}{weights}": "auc" for kind in ("ovr", "ovo") for weights in ("", "_weighted")}
_HIGHER |= {"neg_log_loss": "log_loss", "neg_mean_absolute_error": "mae"}
_HIGHER |= {"neg_mean_squared_error": "r2", "neg_root_mean_squared_error": "r2"}
_LOWER = {"error": "error", "error_rate": "error", "log_loss": "log_loss", "logloss": "log_loss"}
_LOWER |= {"mae": "mae", "mean_absolute_error": "mae", "mse": "r2", "rmse": "r2", "mean_squared_error": "r2"}


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
