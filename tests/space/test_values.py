"""Values of one hyperparameter next to its bounds and between its steps."""

import pytest

from dre_jax.errors import DataError
from dre_jax.tuning import Float, Int, Space
from tests.error_messages import raises_line

STEPS = "and steps of {} from the lower bound, but got"


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        (Float(0.0, 1.0), 1.0 + 5e-10, 1.0),
        (Float(0.0, 1.0), -1e-10, 0.0),
        (Float(1e-3, 1.0, log=True), 1e-3 - 1e-13, 1e-3),
        (Float(0.0, 1.0, step=0.25), 1.0 + 5e-10, 1.0),
    ],
)
def test_rounding_beside_a_bound_is_the_bound(parameter, value, expected):
    assert Space({"x": parameter}).check({"x": value}) == {"x": expected}


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        (Float(0.0, 1.0), 1.0 + 1e-8, "in [0.0, 1.0], but got"),
        (Int(1, 10**12), 10**12 + 500, "in [1, 1000000000000], but got"),
        (Int(1, 5), 2.5, "a whole number in [1, 5], but got"),
        (Int(0, 10, step=2), 3, STEPS.format(2)),
        (Float(0.0, 10.0, step=1.0), 2.5, STEPS.format(1.0)),
    ],
)
def test_errors_name_steps_only_where_there_are_some(parameter, value, reason):
    with raises_line(DataError, reason):
        Space({"x": parameter}).check({"x": value})
