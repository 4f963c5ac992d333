"""Scrambled Sobol sequences, the same to the bit as those of `scipy.stats.qmc.Sobol`.

Importing `scipy.stats` takes half a second, which is as long as the rest of a first suggestion. SciPy's table of
direction numbers (Joe and Kuo 2008) is read without it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_BITS = 30
_TABLE = "stats/_sobol_direction_numbers.npz"

Words = npt.NDArray[np.uint32]


def sobol_points(n: int, n_parts: int, seed: int) -> np.ndarray:
    """Returns n points f32[n, P] of a scrambled Sobol sequence, n a power of two.

    The scrambling is a random linear matrix and a digital shift (Matousek 1998).

    Example:
      >>> points = sobol_points(4, 2, 0)
      >>> sorted((4 * points[:, 0]).astype(int).tolist())
      [0, 1, 2, 3]
    """
    directions = _directions(n_parts)
    if directions is None:
        from scipy.stats import qmc

        sequence = qmc.Sobol(n_parts, scramble=True, seed=np.random.default_rng(seed))
        return np.asarray(sequence.random_base2(n.bit_length() - 1), np.float32)
    rng = np.random.default_rng(seed).spawn(1)[0]
    powers = np.uint32(2) ** np.arange(_BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(n_parts, _BITS), dtype=np.uint32) @ powers
    matrices = np.tril(rng.integers(2, size=(n_parts, _BITS, _BITS), dtype=np.uint32))
    matrices[:, np.arange(_BITS), np.arange(_BITS)] = 1
    digits = (directions[:, :, None] >> np.arange(_BITS - 1, -1, -1).astype(np.uint32)) & 1  # the highest first
    scrambled = np.einsum("dpk,djk->djp", matrices, digits) % 2
    directions = (scrambled.astype(np.uint32) @ powers[::-1]).astype(np.uint32)
    # The points in the order of Gray code: each differs from the one before by one direction.
    words = np.repeat(shift[None, :].astype(np.uint32), n, axis=0)
    numbers = np.arange(n)
    gray = numbers ^ (numbers >> 1)
    for j in range(n.bit_length() - 1):
        words ^= np.where((gray[:, None] >> j) & 1, directions[None, :, j], np.uint32(0))
    return (words * (1.0 / 2**_BITS)).astype(np.float32)


@cache
def _directions(n_parts: int) -> Words | None:
    """Returns direction numbers u32[P, 30]; None without SciPy's table of so many."""
    table = _table()
    if table is None or n_parts > len(table[0]):
        return None
    polynomials, initial = table
    directions = np.ones((n_parts, _BITS), np.int64)
    for i in range(1, n_parts):
        polynomial = int(polynomials[i])
        degree = polynomial.bit_length() - 1
        row = [int(number) for number in initial[i, :degree]]
        for j in range(degree, _BITS):
            value = row[j - degree]
            for k in range(degree):
                if polynomial >> (degree - 1 - k) & 1:
                    value ^= row[j - k - 1] << (k + 1)
            row.append(value)
        directions[i] = row[:_BITS]
    return (directions << np.arange(_BITS - 1, -1, -1)).astype(np.uint32)


@cache
def _table() -> tuple[Any, Any] | None:
    """Returns primitive polynomials and initial direction numbers; None where SciPy has none in that form."""
    spec = find_spec("scipy")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / _TABLE
        if path.exists():
            with np.load(path) as file:
                if {"poly", "vinit"} <= set(file):
                    return file["poly"], file["vinit"]
    return None
