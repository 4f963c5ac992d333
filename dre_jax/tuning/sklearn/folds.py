"""Folds that are drawn once, and parts of them."""

from collections.abc import Iterator, Sequence
from typing import Any

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
