import numpy as np
import pytest

from dre_jax.data import checks
from dre_jax.errors import DataError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, ": a task must hold 'X' and 'y', but 'X' is missing"),
        ({"y": None}, ": a task must hold 'X' and 'y', but 'y' is missing"),
        ({"X": 3}, ": X must be a list, but got 3"),
        ({"X": [], "y": []}, ": a task must hold at least one row, but it is empty"),
        ({"X": [[0.5, 0.5]]}, ": X and y must have as many rows, but X has 1 and y has 2"),
        ({"X": [[0.5, 0.5], [0.5]]}, ", row 1: every row of X must have 2 columns like row 0, but it has 1"),
        ({"X": [[], []]}, ", row 0: a row of X must have at least one column, but it is empty"),
        ({"X": [0.5, 0.5]}, ", row 0: a row of X must be a list of numbers, but got 0.5"),
        ({"X": [[0.5, 0.5], [0.5, "0.5"]]}, ", row 1: X must hold numbers, but column 1 is '0.5'"),
        ({"X": [[0.5, 0.5], [0.5, "x" * 99]]}, r", row 1: X must hold numbers, but column 1 is 'x{56}\.\.\.$"),
        ({"X": [[True], [False]]}, ", row 0: X must hold numbers, but column 0 is True"),
        ({"X": [[0.5], [10**400]]}, ", row 1: X must hold numbers, but column 0 is 1000"),
        ({"X": [[0.5, 0.5], [0.5, NAN]]}, r", row 1: X must be finite \(float32\), but column 1 is nan"),
        ({"X": [[0.5, 1e300], [0.5, 0.5]]}, r", row 0: X must be finite \(float32\), but column 1 is 1e\+300"),
        ({"y": [[0.5], [NAN]]}, ", row 1: y must be finite, but got nan"),
        ({"y": [INF, 0.5]}, ", row 0: y must be finite, but got inf"),
        ({"y": [[0.5], ["good"]]}, ", row 1: y must hold numbers, but got 'good'"),
        ({"y": [[0.5], 0.5]}, ", row 1: y must be all numbers or all lists of one number, but it mixes them"),
        ({"y": [[0.5], [0.5, 0.5]]}, ", row 1: a row of y must hold one number, but it holds 2"),
        ({"y": [[[0.5]], [[0.5]]]}, r", row 0: y must hold numbers, but got \[0.5\]"),
    ],
)
def test_tables_that_cannot_be_used(change, message):
    value = {"X": [[0.5, 0.5], [0.25, 1]], "y": [[0.5], [0.25]]} | change
    with pytest.raises(DataError, match=f"here{message}"):
        checks.table({key: entry for key, entry in value.items() if entry is not None}, "here")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"must be a list of at least one row number, but got \[\]"),
        ("0", "must be a list of at least one row number, but got '0'"),
        ([0, 5], "must point into the table's 5 rows, but got row 5"),
        ([-1], "must point into the table's 5 rows, but got row -1"),
        ([1, 2, 1], "must not repeat a row, but row 1 occurs more than once"),
        ([0, 1.0], "must hold whole row numbers, but got 1.0"),
        ([0, True], "must hold whole row numbers, but got True"),
    ],
)
def test_designs_that_do_not_fit(rows, message):
    with pytest.raises(DataError, match=f"here: an initial design {message}"):
        checks.design_rows(rows, 5, "here")


@pytest.mark.parametrize("y", [[0.1, 1], [[0.1], [1]]])
def test_whole_numbers_and_both_forms_of_y(y):
    inputs, responses = checks.table({"X": [[0, 1], [1, 0]], "y": y}, "here")
    np.testing.assert_array_equal(inputs, np.float32([[0, 1], [1, 0]]), strict=True)
    np.testing.assert_array_equal(responses, np.float64([0.1, 1]), strict=True)
    np.testing.assert_array_equal(checks.design_rows([4, 0, 2], 5, "here"), np.int64([4, 0, 2]), strict=True)
