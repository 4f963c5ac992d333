"""Configurations as points of the unit cube, encoded once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dre_jax.tuning.space.space import Space

_MAX_ENCODINGS = 100_000


class EncodedParams(NamedTuple):
    """A valid configuration, encoded."""

    identity: bytes
    """Equal for equal configurations, whose numbers may differ by a billionth of their range."""
    point: np.ndarray
    """f64[P], see `Space.point`."""


class ParamsEncoder:
    """Encodes configurations of a space, with a cache: every suggestion encodes all trials."""

    def __init__(self, space: Space) -> None:
        """Creates an encoder with an empty cache."""
        self._space = space
        # By the identity of the configuration, whose entry keeps it from being reused.
        self._cache: dict[int, tuple[Mapping[str, Any], EncodedParams]] = {}

    def encode(self, params: Mapping[str, Any]) -> EncodedParams:
        """Returns an encoded configuration, which must not change. Raises `DataError` if it is invalid."""
        cached = self._cache.get(id(params))
        if cached is not None:
            return cached[1]
        point = self._space.point(params)
        encoded = EncodedParams((np.round(point, 9) + 0.0).tobytes(), point)  # no zero with a sign
        if len(self._cache) >= _MAX_ENCODINGS:
            self._cache.clear()
        self._cache[id(params)] = params, encoded
        return encoded
