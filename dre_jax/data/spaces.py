"""A search space in memory: tasks as plain arrays, by split and dataset name."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.checks import one_of
from dre_jax.data.columns import Column
from dre_jax.errors import DataError
from dre_jax.summaries import summary

Designs = dict[str, dict[str, npt.NDArray[np.int64]]]
"""Dataset -> seed name -> int64 (k,) row numbers of the first evaluations."""

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """One model family on one dataset: every configuration that was evaluated, and its response.

    Example:
      >>> Task("wine", np.zeros((3, 2), np.float32), np.array([0.1, 0.5, 0.9])).n_columns
      2
    """

    name: str
    """Name of the dataset."""
    X: npt.NDArray[np.float32]
    """f32[n, D], encoded in [0, 1]."""
    y: npt.NDArray[np.float64]
    """f64[n], maximised."""
    costs: npt.NDArray[np.float64] | None = None
    """f64[n], positive, NaN where unknown; None if all are."""
    features: npt.NDArray[np.float32] | None = None
    """f32[P]: what is known of the task before its first trial, such as its number of rows, encoded; NaN where unknown.
    None if nothing is known. All tasks of a search space have the same P features."""

    def __repr__(self) -> str:
        return summary(self, name=self.name, n_rows=self.n_rows, n_columns=self.n_columns)

    @property
    def n_rows(self) -> int:
        """Number of evaluated configurations n."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of encoded hyperparameters D."""
        return int(self.X.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class SearchSpace:
    """A search space's tasks by split and dataset name, and its initial designs.

    Example:
      >>> task = Task("wine", np.zeros((3, 2), np.float32), np.array([0.1, 0.5, 0.9]))
      >>> list(SearchSpace("svm", train={"wine": task}).tasks())[0][0]
      'train'
    """

    name: str
    """Name of the search space."""
    train: dict[str, Task] = field(default_factory=dict)
    """Past tasks, by dataset name."""
    validation: dict[str, Task] = field(default_factory=dict)
    """Tasks for choices of settings."""
    test: dict[str, Task] = field(default_factory=dict)
    """Tasks for reported results."""
    designs: Designs = field(default_factory=dict)
    """Rows of the first evaluations, by dataset and seed name."""
    columns: tuple[Column, ...] | None = None
    """Descriptions of the columns, where they are known."""

    def __repr__(self) -> str:
        splits: dict[str, Any] = {"train": self.train, "validation": self.validation, "test": self.test}
        return summary(self, name=self.name, **{name: list(tasks) for name, tasks in splits.items() if tasks})

    def split(self, name: str) -> dict[str, Task]:
        """The tasks of "train", "validation" or "test". Raises `ConfigError` for any other name."""
        one_of("the split", name, SPLITS)
        tasks: dict[str, Task] = getattr(self, name)
        return tasks

    def require_train_tasks(self) -> dict[str, Task]:
        """The training tasks, for methods that learn from them. Raises `DataError` when there is none."""
        if not self.train:
            raise DataError(f"meta-training needs training tasks, but search space {self.name!r} has none")
        return self.train

    def unvaried_columns(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float32]]:
        """Columns of hyperparameters that no training task varies, bool[D], and the first row, f32[D].

        A hyperparameter varies if one of its columns does. Without descriptions of columns there is none.
        """
        tables = [task.X for task in self.require_train_tasks().values()]
        first = np.asarray(tables[0][0], np.float32)
        if self.columns is None:
            return np.zeros(len(first), bool), first
        varies = np.any([(table != first).any(axis=0) for table in tables], axis=0)
        varied_parents = {column.parent for column, is_varied in zip(self.columns, varies, strict=True) if is_varied}
        return np.array([column.parent not in varied_parents for column in self.columns]), first

    def tasks(self) -> Iterator[tuple[str, Task]]:
        """Every task with the name of its split: training, validation, test."""
        return ((split, task) for split in SPLITS for task in self.split(split).values())

    @property
    def n_columns(self) -> int:
        """Number of columns D, the same in every task. Raises `DataError` when there is no task."""
        for _, task in self.tasks():
            return task.n_columns
        raise DataError(f"space {self.name!r}: a search space must hold at least one task, but it has none")


def fingerprint(tasks: SearchSpace | Mapping[str, Task]) -> str:
    """A digest of training data: names, X, y and features of a space's training split, or of the tasks.

    It depends on the order of the rows, but not on the order of the datasets. 64 hexadecimal digits (SHA-256).

    >>> task = Task("wine", np.array([[0.5]], np.float32), np.array([0.9]))
    >>> fingerprint({"wine": task}) == fingerprint(SearchSpace("svm", train={"wine": task}))
    True
    """
    table = tasks.train if isinstance(tasks, SearchSpace) else tasks
    digest = hashlib.sha256()
    for name in sorted(table):
        # The header tells where one part ends, so that no two lists of tasks give the same bytes.
        digest.update(json.dumps([name, *table[name].X.shape]).encode())
        # In place where they are such arrays already: a table may be mapped from a file larger than the memory.
        digest.update(np.ascontiguousarray(table[name].X, "<f4").ravel().data)
        digest.update(np.ascontiguousarray(table[name].y, "<f8").ravel().data)
        if (features := table[name].features) is not None:
            digest.update(json.dumps(["features", *np.asarray(features, float).tolist()]).encode())
    return digest.hexdigest()
