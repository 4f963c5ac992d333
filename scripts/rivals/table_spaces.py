"""Search spaces of tables in HPO-B's layout, which have columns and no names of choices.

Columns side by side of zeros and ones, of which each row has one 1, are the levels of a choice. Another column of zeros
and ones is a whole number, and any other column a real number. Columns of one value are left out.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning import Categorical, Float, Int, Space

_TOLERANCE = 1e-6


def table_space(tables: Sequence[np.ndarray]) -> Space:
    """Returns the search space of the tables f[n, D] of one family.

    Example:
      >>> table_space([np.array([[0.2, 1.0, 0.0, 1.0], [0.7, 0.0, 1.0, 0.0], [0.4, 0.0, 1.0, 1.0]])])
      Space({'x0': Float(low=0.2, high=0.7), 'x1': Categorical(choices=('1', '2')), 'x3': Int(low=0, high=1)})
    """
    rows = np.concatenate(tables)
    space: dict[str, Float | Int | Categorical] = {}
    for start, stop in groups(rows):
        column = rows[:, start]
        if stop - start > 1:
            space[f"x{start}"] = Categorical(tuple(map(str, range(start, stop))))
        elif np.ptp(column) > 0.0:
            low, high = float(column.min()), float(column.max())
            space[f"x{start}"] = Int(0, 1) if is_binary(column) else Float(low, high)
    return Space(space)


def groups(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yields the first column of each hyperparameter and that after its last."""
    binary, start = [is_binary(column) for column in rows.T], 0
    while start < rows.shape[1]:
        stop = start + 1
        for end in range(start + 2, rows.shape[1] + 1):
            if not all(binary[start:end]):
                break
            if np.all(np.abs(rows[:, start:end].sum(axis=1) - 1.0) < _TOLERANCE):
                stop = end
                break
        yield start, stop
        start = stop


def is_binary(column: np.ndarray) -> bool:
    """Returns whether a column has zeros and ones only."""
    return bool(np.all((np.abs(column) < _TOLERANCE) | (np.abs(column - 1.0) < _TOLERANCE)))


def configurations(space: Space, rows: np.ndarray) -> list[Params]:
    """Returns the configurations of rows f[n, D] of a table of `table_space`."""
    return [{name: _value(space, name, row) for name in space} for row in np.asarray(rows, np.float64)]


def _value(space: Space, name: str, row: np.ndarray) -> str | int | float:
    parameter, first = space[name], int(name[1:])
    if isinstance(parameter, Categorical):
        return str(parameter.choices[int(row[first : first + len(parameter.choices)].argmax())])
    return round(row[first]) if isinstance(parameter, Int) else float(row[first])
