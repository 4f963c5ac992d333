"""Coordinates of permutations: the levels of one are all orders of its items, sorted.

Orders are arrays of items, by their positions among the items of the hyperparameter. The functions take arrays
of NumPy or JAX.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dre_jax.runtime.arrays import namespace
from dre_jax.space.layout_parts import Conditions, Discrete


@dataclass(frozen=True)
class Order(Discrete):
    """A permutation, and its columns."""

    n_items: int
    columns: tuple[int, ...]
    """Positions of the columns of all pairs (0, 1), (0, 2), ..., (1, 2), ...: 1 where the first item precedes."""
    missing: int | None = None
    """Position of the flag that the hyperparameter is not set."""
    alternatives: tuple[Conditions, ...] = ()
    ordered: ClassVar[bool] = False

    @property
    def levels(self) -> int:  # type: ignore[override]
        """Number of orders."""
        return math.factorial(self.n_items)

    def items(self, level: Any) -> Any:
        """Returns the items i32[..., n] of levels f[...] in their order."""
        xp, n = namespace(level), self.n_items
        rest = level.astype(xp.int32)
        # Among the items that are left, which is next (Lehmer 1960)?
        items = [rest // math.factorial(n - 1 - i) % (n - i) for i in range(n)]
        for i in range(n - 2, -1, -1):
            items[i + 1 :] = [item + (item >= items[i]).astype(xp.int32) for item in items[i + 1 :]]
        return xp.stack(items, axis=-1)

    def level(self, items: Any) -> Any:
        """Returns the levels i32[...] of items i32[..., n]; inverts `items`."""
        xp, n = namespace(items), self.n_items
        level = xp.zeros((), xp.int32)
        for i in range(n - 1):
            n_smaller = xp.sum(items[..., i + 1 :] < items[..., i : i + 1], axis=-1, dtype=xp.int32)
            level = level + n_smaller * math.factorial(n - 1 - i)
        return level

    def encode(self, u: Any, active: Any) -> dict[int, Any]:
        """Returns the columns at coordinates f[...]; 0.5 for every pair where inactive."""
        xp = namespace(u)
        places = xp.argsort(self.items(self.values(u)), axis=-1)  # of all items
        columns = {
            column: xp.where(active, (places[..., i] < places[..., j]).astype(u.dtype), 0.5)
            for column, (i, j) in zip(self.columns, self._pairs, strict=True)
        }
        if self.missing is not None:
            columns[self.missing] = xp.where(active, 0.0, 1.0)
        return columns

    def decode(self, row: np.ndarray, *, or_inactive: bool) -> int | None:
        """Returns the level of columns f64[D]: items by the number of those that they precede (Borda)."""
        if or_inactive and self.missing is not None and row[self.missing] >= 0.5:
            return None
        scores = np.zeros(self.n_items)
        for column, (i, j) in zip(self.columns, self._pairs, strict=True):
            scores[i] += row[column].clip(0.0, 1.0)
            scores[j] += 1.0 - row[column].clip(0.0, 1.0)
        return int(self.level(np.argsort(-scores, kind="stable")))

    def step(self, u: Any, distance: Any, anywhere: Any) -> Any:
        """Returns the coordinates after one item has moved to another place, from coordinates f[...].

        The distances f[...] are shares of all places; an item moves at least to the next place. The uniform numbers
        ``anywhere`` f[...] decide on the item.
        """
        xp, n, items = namespace(u), self.n_items, self.items(self.values(u))
        start = xp.clip(xp.floor(anywhere * n), 0, n - 1)
        way = xp.where(distance < 0.0, -1.0, 1.0)
        way = xp.where((start + way < 0.0) | (start + way > n - 1.0), -way, way)
        target = xp.clip(start + way * xp.maximum(xp.round(xp.abs(distance) * n), 1.0), 0.0, n - 1.0)
        # The item goes behind the one at its target if it moves there from the front, otherwise before it.
        position = xp.broadcast_to(xp.arange(n, dtype=u.dtype), items.shape)
        position = xp.where(position == start[..., None], (target + 0.5 * way)[..., None], position)
        moved = xp.take_along_axis(items, xp.argsort(position, axis=-1), axis=-1)
        return self.coordinates(self.level(moved).astype(u.dtype))

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(self.n_items), 2))
