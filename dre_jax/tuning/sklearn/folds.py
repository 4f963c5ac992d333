"""Folds that are drawn once, and parts of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import get_routing_for_object


class SameFolds:
    """A splitter whose folds are drawn once."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._folds: list[Any] | None = None

    def split(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yields the folds of the first call."""
        if self._folds is None:
            self._folds = list(self._splitter.split(*arguments, **options))
        yield from self._folds

    def get_n_splits(self, *arguments: Any, **options: Any) -> Any:
        """Returns the number of folds."""
        return self._splitter.get_n_splits(*arguments, **options)

    def get_metadata_routing(self) -> Any:
        """Returns the routing of the splitter."""
        return get_routing_for_object(self._splitter)


class SomeFolds:
    """A splitter that has some folds of another one."""

    def __init__(self, splitter: Any, numbers: Sequence[int]) -> None:
        self._splitter, self._numbers = splitter, numbers

    def split(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yields the folds of the numbers, in their order."""
        folds = list(self._splitter.split(*arguments, **options))
        yield from (folds[number] for number in self._numbers)


class PartialFolds:
    """A splitter with a random part of each training fold; a larger part contains a smaller one."""

    def __init__(self, splitter: Any, n_rows: int, seed: int, labels: np.ndarray | None) -> None:
        """Creates a splitter.

        Args:
          splitter: whose folds become smaller.
          n_rows: of each training fold, which stays as it is if it has no more.
          seed: of the part.
          labels: classes of all rows, for a stratified part; None for any part.
        """
        self._splitter, self._n_rows, self._seed, self._labels = splitter, n_rows, seed, labels

    def split(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yields the smaller training folds, in the order of the data, and the test folds as they are."""
        for number, (train, test) in enumerate(self._splitter.split(*arguments, **options)):
            if len(train) <= self._n_rows:
                yield train, test
            else:
                labels = None if self._labels is None else self._labels[train]
                order = row_order(len(train), labels, np.random.default_rng([self._seed, number]))
                yield np.asarray(train)[np.sort(order[: self._n_rows])], test


def row_order(n: int, labels: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Returns an order i[n] of n rows of which every beginning is random, and has each class in its share.

    Example:
      >>> labels = np.array([0, 0, 0, 0, 1, 1])
      >>> np.bincount(labels[row_order(6, labels, np.random.default_rng(0))[:3]])
      array([2, 1])
    """
    order = rng.permutation(n)
    if labels is None:
        return order
    places = np.empty(n)
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        places[rows] = np.arange(len(rows)) / len(rows)  # 0 for the first one: no class is missing
    return order[np.argsort(places[order], kind="stable")]
