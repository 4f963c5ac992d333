"""What host methods share."""

import numpy as np
import pytest

from dre_jax.errors import MethodError
from dre_jax.methods.baselines.host_tables import best_row


def test_equal_rows_are_drawn_and_nan_is_refused():
    np.random.seed(0)  # noqa: NPY002
    drawn = [best_row(np.array([1.0, 3.0, 3.0, -np.inf, 3.0])) for _ in range(60)]
    assert set(drawn) == {1, 2, 4}
    assert best_row(np.full(1, -np.inf)) == 0
    with pytest.raises(MethodError, match="gave 1 of them NaN"):
        best_row(np.array([1.0, np.nan]))
