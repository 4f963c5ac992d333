"""Families of models: default search spaces and configurations, estimators and scores."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dre_jax.data.files import parse_json
from dre_jax.errors import ConfigError, DataError
from dre_jax.runtime.reports import say
from dre_jax.space.json_format import from_json
from dre_jax.space.parameters import Int
from dre_jax.space.space import Params, Space

CLASS_METRICS = ("error", "log_loss", "auc")
NUMBER_METRICS = ("r2", "mae")
_HIGHER = {"accuracy": "error", "roc_auc": "auc", "auc": "auc", "r2": "r2"}
_HIGHER |= {f"roc_auc_{kind}{weights}": "auc" for kind in ("ovr", "ovo") for weights in ("", "_weighted")}
_HIGHER |= {"neg_log_loss": "log_loss", "neg_mean_absolute_error": "mae"}
_HIGHER |= {"neg_mean_squared_error": "r2", "neg_root_mean_squared_error": "r2"}
_LOWER = {"error": "error", "error_rate": "error", "log_loss": "log_loss", "logloss": "log_loss"}
_LOWER |= {"zero_one_loss": "error", "mae": "mae", "mean_absolute_error": "mae", "mse": "r2", "rmse": "r2"}
_LOWER |= {"mean_squared_error": "r2", "root_mean_squared_error": "r2"}
_NEAREST = {
    "error": "balanced_accuracy cohen_kappa f1 fbeta hamming_loss jaccard matthews_corrcoef precision recall "
    "top_k_accuracy",
    "auc": "average_precision",
    "log_loss": "brier brier_score_loss d2_brier d2_log_loss hinge_loss",
    "r2": "d2_tweedie explained_variance max_error mean_gamma_deviance mean_poisson_deviance mean_squared_log_error "
    "mean_tweedie_deviance root_mean_squared_log_error",
    "mae": "d2_absolute_error d2_pinball mape mean_absolute_percentage_error mean_pinball_loss median_absolute_error",
}
"""Other scores by the metric that is nearest, without ``neg_``, ``_score`` and the kind of average."""
_NEAREST_METRIC = {score: metric for metric, scores in _NEAREST.items() for score in scores.split()}
_WRAPPED = {
    "TransformedTargetRegressor": "regressor",
    **dict.fromkeys(("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier"), "estimator"),
    **dict.fromkeys(("MultiOutputClassifier", "MultiOutputRegressor", "CalibratedClassifierCV"), "estimator"),
}
"""Estimators of scikit-learn that hold another one, with its name in `set_params`."""


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
    """Metrics without a surrogate: none was made, or its first suggestion was behind the default on other data."""
    budget: str | None = None
    """The hyperparameter that a fit's cost is proportional to, such as the number of trees."""

    @cached_property
    def space(self) -> Space:
        """The search space."""
        return from_json(self.parameters)

    def space_within(self, budget: int) -> Space:
        """Returns the search space with at most ``budget`` trees, rounds or iterations of a fit.

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


def find_pretrained(name: str, metric: str | None) -> tuple[Path, str | None]:
    """Returns the file of the surrogate for a score, and the direction of the score; see `Surrogate.pretrained`."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ConfigError(f"a pretrained surrogate is one of {', '.join(FAMILIES)}, but got {name!r}")
    metrics = FAMILIES[name].metrics
    if not metrics:
        raise ConfigError(f"{name} has a default search space, but no pretrained surrogate")
    score = nearest = None
    if isinstance(metric, str) and (score := find_metric(metric)) is None:
        score = nearest = nearest_metric(metric)
    if metric is not None and (score is None or score.name not in metrics):
        rule = f"pretrained surrogates of {name} know the metrics {', '.join(metrics)}"
        raise ConfigError(f"{rule}, but got {metric!r}")
    if nearest is not None:
        say(f"no surrogate of {name} knows {metric}: that of {nearest.name}, the nearest metric, is used")
    if score is None:
        return pretrained_path(name, metrics[0]), None
    return pretrained_path(name, score.name), score.direction


def _read() -> dict[str, Family]:
    text = (resources.files(__package__) / "families.json").read_bytes()
    content = parse_json(text, "families.json")
    return {name: Family(name=name, parameters=family.pop("space"), **family) for name, family in content.items()}


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
    kind: type
    """The class of the family, which is that of the estimator or one that it inherits from."""
    is_classifier: bool
    prefix: str
    """What precedes its parameters in `set_params`: the names of a pipeline's steps."""


def find_metric(name: str) -> KnownMetric | None:
    """Returns the metric of a score by its name in scikit-learn or a common name; None if it is unknown."""
    name = name.removesuffix("_score")
    if name in _HIGHER:
        return KnownMetric(_HIGHER[name], "maximize")
    return KnownMetric(_LOWER[name], "minimize") if name in _LOWER else None


def nearest_metric(name: str) -> KnownMetric | None:
    """Returns the metric nearest to a score of scikit-learn that no surrogate knows; None if there is none."""
    score = re.sub(r"_(micro|macro|weighted|samples)$", "", name.removesuffix("_score"))
    metric = _NEAREST_METRIC.get(score.removeprefix("neg_"))
    if metric is None:
        return None
    is_lower = re.search(r"(error|loss|deviance|mape)$", score) and not score.startswith(("neg_", "d2_"))
    return KnownMetric(metric, "minimize" if is_lower else "maximize")


def find_model(estimator: Any) -> KnownModel | None:
    """Returns the model of an estimator, of the one that it holds, or of a pipeline's last step; None if unknown.

    A subclass of a known model is that model if it has the parameters of its search space. A library's own subclasses
    of its models are other models, as `Lasso` is of `ElasticNet`.
    """
    prefix, for_classes = "", False
    while inner := _inner(estimator):
        for_classes |= type(estimator).__name__.endswith(("Classifier", "ClassifierCV"))
        prefix += f"{inner[0]}__"
        estimator = inner[1]
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return None
    for kind, family, path in _known_bases(type(estimator)):
        if set(family.space) <= set(estimator.get_params(deep=False)):
            return KnownModel(estimator, family, kind, for_classes or path == family.classifier, prefix)
    return None


def _inner(estimator: Any) -> tuple[str, Any] | None:
    """Returns the estimator that another one holds, after its name; None if there is none."""
    names = [kind.__name__ for kind in type(estimator).__mro__]
    if "Pipeline" in names and getattr(estimator, "steps", None):
        return tuple(estimator.steps[-1][:2])
    attribute = next((_WRAPPED[name] for name in names if name in _WRAPPED), "")
    inner = getattr(estimator, attribute, None) if attribute else None
    return None if inner is None else (attribute, inner)


def _known_bases(kind: type) -> Iterator[tuple[type, Family, str]]:
    """Yields the family of a class, if there is one, with the class of the family and its path."""
    for family in FAMILIES.values():
        for path in filter(None, (family.classifier, family.regressor)):
            package, name = path.partition(".")[0], path.rpartition(".")[2]
            # Libraries move classes between modules, but not out of their package.
            bases = (
                base for base in kind.__mro__ if base.__module__.partition(".")[0] == package and hasattr(base, "fit")
            )
            if (base := next(bases, None)) is not None and base.__name__ == name:
                yield base, family, path
