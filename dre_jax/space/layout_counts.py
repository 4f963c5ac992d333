"""The rule on how many hyperparameters are in use, in terms of positions of hyperparameters.

The functions take arrays of NumPy or JAX, or the numbers and truth values of one configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dre_jax.runtime.arrays import namespace
from dre_jax.space.layout_parts import Level
from dre_jax.space.layout_rules import Parts, functions_of


@dataclass(frozen=True)
class Cardinality:
    """Bounds of the number of hyperparameters in use: active ones with other values than those that do not count."""

    unused: tuple[tuple[int, float], ...]
    """Positions, and the level or number of each that means not in use."""
    low: int
    high: int

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the hyperparameters."""
        return tuple(i for i, _ in self.unused)

    def in_use(self, parts: Parts, values: Any, active: Any) -> dict[int, Any]:
        """Returns masks bool[...] by position: which hyperparameters count."""
        return {
            i: active[i] & functions_of(values[i]).logical_not(_is_unused(parts[i], values[i], x))
            for i, x in self.unused
        }

    def allows(self, parts: Parts, values: Any, active: Any) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        in_use = self.in_use(parts, values, active)
        number = sum(functions_of(mask).where(mask, 1, 0) for mask in in_use.values())
        return (number >= self.low) & (number <= self.high)

    def exact(self, parts: Parts, values: Any, active: Any) -> dict[int, float]:
        """Returns the real numbers, by position, that differ only by rounding from the one that does not count.

        ``values`` are those of one configuration, as numbers of Python.
        """
        real = [(i, x) for i, x in self.unused if active[i] and not parts[i].levels]
        return {i: x for i, x in real if values[i] != x and _is_unused(parts[i], values[i], x)}

    def nearest(self, parts: Parts, columns: Sequence[Any], active: Any, is_fixed: Sequence[Any]) -> Any:
        """Returns coordinates f[...] by position, of which the right number is in use, and masks of those in use.

        If too many are in use, those with the largest distance from the unused value stay. Fixed ones all stay.
        """
        values = {i: parts[i].values(columns[i]) for i in self.positions}
        in_use = self.in_use(parts, values, active)
        distances = [abs(columns[i] - parts[i].coordinates(x)) for i, x in self.unused]
        where = namespace(columns[self.positions[0]]).where
        scores = [where(in_use[i], d, -1.0) for (i, _), d in zip(self.unused, distances, strict=True)]
        kept = self._keep(scores, list(in_use.values()), active, is_fixed)
        return self._switch(parts, columns, active, is_fixed, kept), kept

    def draw(
        self, parts: Parts, points: np.ndarray, active: Any, is_fixed: Sequence[np.bool_]
    ) -> dict[int, np.ndarray]:
        """Returns coordinates f[n] by position, of which the right number is in use, from uniform points f[n, P].

        Of numbers, which are hardly ever at the unused value, every second one is not in use. The others are uniform:
        uniform numbers that exceed the largest one of those that are left out are uniform above it.
        """
        columns = [points[:, i] for i in range(points.shape[1])]
        numbers = [i for i in self.positions if not isinstance(parts[i], Level) and not is_fixed[i]]
        values = {i: parts[i].values(columns[i]) for i in self.positions}
        scores = [_score(parts[i], columns[i], x) for i, x in self.unused]
        in_use = self.in_use(parts, values, active) | {i: active[i] & (columns[i] >= 0.5) for i in numbers}
        kept = self._keep(scores, [in_use[i] for i in self.positions], active, is_fixed)
        left_out = [
            np.where(active[i] & ~kept[i] & ~is_fixed[i], score, 0.0)
            for i, score in zip(self.positions, scores, strict=True)
        ]
        is_least = np.sum(list(kept.values()), axis=0) == self.low
        threshold = np.maximum(np.max(left_out, axis=0), np.where(is_least, 0.0, 0.5))
        for i in numbers:
            columns[i] = ((columns[i] - threshold) / (1.0 - threshold)).clip(0.0, 1.0)
        return self._switch(parts, columns, active, is_fixed, kept)

    def _keep(self, scores: Any, in_use: Any, active: Any, is_fixed: Sequence[Any]) -> dict[int, Any]:
        """Returns masks by position of those that shall be in use: the ones of highest score, and all fixed ones."""
        xp, may_change = namespace(scores[0]), [active[i] & ~is_fixed[i] for i in self.positions]
        scores = [
            xp.where(may, score, xp.where(mask, 2.0, -2.0))
            for may, score, mask in zip(may_change, scores, in_use, strict=True)
        ]
        kept = {}
        for k, i in enumerate(self.positions):
            earlier = [xp.where(other >= scores[k], 1, 0) for other in scores[:k]]
            later = [xp.where(other > scores[k], 1, 0) for other in scores[k + 1 :]]
            rank = sum([*earlier, *later])
            kept[i] = xp.where(may_change[k], (in_use[k] & (rank < self.high)) | (rank < self.low), in_use[k])
        return kept

    def _switch(
        self, parts: Parts, columns: Sequence[Any], active: Any, is_fixed: Sequence[Any], kept: dict[int, Any]
    ) -> dict[int, Any]:
        """Returns the coordinates f[...] by position, with those in use that are kept, and no others."""
        switched = {}
        for i, x in self.unused:
            u, xp = columns[i], namespace(columns[i])
            is_unused = _is_unused(parts[i], parts[i].values(u), x)
            on = xp.where(is_unused, _other_coordinate(parts[i], x), u)
            off = xp.where(is_unused, u, xp.asarray(parts[i].coordinates(x), u.dtype))
            switched[i] = xp.where(active[i] & ~is_fixed[i], xp.where(kept[i], on, off), u)
        return switched


def _is_unused(part: Any, value: Any, unused: float) -> Any:
    """Returns the mask bool[...] of values f[...] that are the unused one; real numbers are, up to float32's errors.

    The room is the same in all precisions, because a point of a float32 program is one of the host later.
    """
    if part.levels:
        return part.is_same(value, unused)
    return abs(value - unused) <= 2.0 * float(part.rounding(np.float32(unused)))


def _score(part: Any, u: np.ndarray, unused: float) -> np.ndarray:
    """Returns uniform numbers f[n] for uniform coordinates f[n] of a hyperparameter; at least 0.5 means in use."""
    if not isinstance(part, Level):
        return u
    within = (u * part.levels) % 1.0
    return np.where(_is_unused(part, part.values(u), unused), within, 1.0 + within) / 2.0


def _other_coordinate(part: Any, unused: float) -> float:
    """Returns the coordinate of a value in use: the next one, or the middle of a range of real numbers."""
    if not part.levels:
        u = float(part.coordinates(unused))
        return 0.5 if abs(u - 0.5) > 0.1 else 0.75
    step, last = (1.0, part.levels - 1) if isinstance(part, Level) else (part.step, part.ends[1])
    return float(part.coordinates(unused + step if unused < last else unused - step))
