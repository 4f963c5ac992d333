"""Functions of host methods that choose among the rows of a table, in NumPy and float64."""

import numpy as np

from dre_jax.errors import MethodError


def seed() -> int:
    """Returns a seed for the generator of another library, from NumPy's, which is seeded for every run."""
    return int(np.random.randint(2**31 - 1))  # noqa: NPY002 - the generator that the loop seeds


def best_row(values: np.ndarray) -> int:
    """Returns the index of the highest of f64[m], a random one of equal values: rows may be in the order of responses.

    Raises `MethodError` where nothing can be compared.
    """
    if np.isnan(values).any():
        raise MethodError(f"a method must give every row a value, but gave {int(np.isnan(values).sum())} of them NaN")
    ties = np.flatnonzero(values == values.max())
    return int(ties[np.random.randint(len(ties))])  # noqa: NPY002
