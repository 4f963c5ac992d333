"""An estimator whose training goes on where another one of the same parameters and data has stopped."""

import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import joblib
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from dre_jax.tuning.sklearn.budgets import can_continue, continue_training


class Resumable(BaseEstimator):
    """An estimator that keeps its trained models in a folder, and continues them with a larger budget.

    A model is found by the estimator's parameters, except the budget, and by its data, so that any process may go on.
    A model that could not be kept is trained anew. `set_params` sets parameters of the estimator.
    """

    def __init__(self, estimator: Any, name: str, folder: Path) -> None:
        """Creates an untrained estimator.

        Args:
          estimator: to train; it stays as it is, ``model`` is the trained one.
          name: of the parameter that is the budget.
          folder: of the models.
        """
        self.estimator = estimator
        self.name = name
        self.folder = folder

    def set_params(self, **params: Any) -> Self:
        """Sets parameters of the estimator."""
        self.estimator.set_params(**params)
        return self

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Trains the estimator to its budget, from that of the same one if there is one."""
        data = (X,) if y is None else (X, y)
        self.model = clone(self.estimator)
        if not can_continue(self.estimator, self.name):
            self.model.fit(*data, **params)
            return self
        budget = self.estimator.get_params()[self.name]
        file = self._file(X, y, params)
        reached, model = _read(file)
        if model is not None and reached < budget:
            continue_training(model, self.name, budget, reached, data, params)
            self.model = model
        else:
            self.model.fit(*data, **params)
        _write(file, budget, self.model)
        return self

    def _file(self, X: Any, y: Any, params: Any) -> Path | None:
        """Returns the file of the models of these parameters and data; None if they cannot be pickled."""
        try:
            return self.folder / joblib.hash((clone(self.estimator).set_params(**{self.name: 1}), X, y, params))
        except _UNPICKLABLE:
            return None

    def __getattr__(self, name: str) -> Any:
        """Returns what the trained estimator has."""
        if name.startswith("__") or "estimator" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__.get("model", self.estimator), name)

    def __getitem__(self, key: Any) -> Any:
        """Returns a step of the trained pipeline, as a user's scorer may ask for."""
        return self.model[key]

    def __sklearn_tags__(self) -> Any:
        """Returns the tags of the estimator."""
        return get_tags(self.estimator)

    def __sklearn_is_fitted__(self) -> bool:
        """Returns whether there is a trained estimator."""
        return "model" in self.__dict__

    def get_metadata_routing(self) -> Any:
        """Returns the routing of the estimator."""
        return self.estimator.get_metadata_routing()


_UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError)


def _read(file: Path | None) -> tuple[int, Any]:
    """Returns the budget and the model of a file; 0 and None without one, as on another machine."""
    if file is None or not file.exists():
        return 0, None
    with file.open("rb") as stream:
        return pickle.load(stream)


def _write(file: Path | None, budget: int, model: Any) -> None:
    """Writes a budget and a model, completely or not at all: on a full disk, for example, the model is not kept."""
    if file is None:
        return
    part = file.with_suffix(f".{os.getpid()}")
    with suppress(*_UNPICKLABLE, OSError):
        part.write_bytes(pickle.dumps((budget, model)))
        part.replace(file)
