"""Scrambled Sobol sequences, the same to the bit as those of `scipy.stats.qmc.Sobol`.

Importing `scipy.stats` takes half a second, which is as long as the rest of a first suggestion. SciPy's table of
direction numbers (Joe and Kuo 2008) is read without it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dre_jax.errors import ConfigError
from dre_jax.runtime.arrays import namespace

_BITS = 30
_TABLE = "stats/_sobol_direction_numbers.npz"

Words = npt.NDArray[np.uint32]


def sobol_points(n: int, n_parts: int, seed: int) -> np.ndarray:
    """Returns n points f32[n, P] of a scrambled Sobol sequence, n a power of two.

    The scrambling is a random linear matrix and a digital shift (Matousek 1998).
    """
    if _directions(n_parts) is None:
        from scipy.stats import qmc

        sequence = qmc.Sobol(n_parts, scramble=True, seed=np.random.default_rng(seed))
        return np.asarray(sequence.random_base2(n.bit_length() - 1), np.float32)
    points: np.ndarray = expand_points(scrambled_words(n, n_parts, seed), n)
    return points


class ScrambledWords(NamedTuple):
    """The numbers that define a scrambled sequence of 2^K points, in 30 bits."""

    shift: Any
    """u32[P]: the first point."""
    directions: Any
    """u32[P, K]: the changes from one point to the next, in the order of Gray code."""


def scrambled_words(n: int, n_parts: int, seed: int) -> ScrambledWords:
    """Returns the words of n points of a scrambled sequence; see `sobol_points`."""
    directions, n_bits = _directions(n_parts), n.bit_length() - 1
    if directions is None:
        raise ConfigError(f"Sobol sequences need SciPy's table of at least {n_parts} direction numbers")
    rng = np.random.default_rng(seed).spawn(1)[0]
    powers = np.uint32(2) ** np.arange(_BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(n_parts, _BITS), dtype=np.uint32) @ powers
    matrices = np.tril(rng.integers(2, size=(n_parts, _BITS, _BITS), dtype=np.uint32))
    matrices[:, np.arange(_BITS), np.arange(_BITS)] = 1
    # The digits of the directions, the highest first.
    digits = (directions[:, :n_bits, None] >> np.arange(_BITS - 1, -1, -1).astype(np.uint32)) & 1
    scrambled = (matrices @ digits.transpose(0, 2, 1)) & 1
    return ScrambledWords(shift, np.einsum("djk,j->dk", scrambled, powers[::-1]))


def expand_points(words: ScrambledWords, n: int) -> Any:
    """Returns the n points f32[n, P] of words of NumPy or JAX."""
    xp = namespace(words.shift)
    numbers = xp.arange(n, dtype=xp.uint32)
    gray = numbers ^ (numbers >> xp.uint32(1))
    points = xp.broadcast_to(words.shift[None, :], (n, len(words.shift)))
    for j in range(n.bit_length() - 1):
        bit = (gray >> xp.uint32(j)) & xp.uint32(1)
        points = points ^ (bit[:, None] * words.directions[None, :, j])
    return points.astype(xp.float32) * xp.float32(1.0 / 2**_BITS)


@cache
def _directions(n_parts: int) -> Words | None:
    """Returns direction numbers u32[P, 30]; None if SciPy's table has fewer."""
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
