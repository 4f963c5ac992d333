"""Spaces that are widened to configurations outside of them."""

import numpy as np
import pytest

from dre_jax.errors import DataError
from dre_jax.space.widening import widened_space
from dre_jax.tuning import Categorical, Float, Int, Less, Space

SPACE = Space(
    {
        "x": Float(0.0, 1.0, step=0.25, likely=(0.0, 0.5), default=0.5),
        "rate": Float(0.01, 1.0, log=True),
        "n": Int(10, 30, step=10),
        "kernel": Categorical(["rbf", "poly", 1]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "size": Categorical(["s", "m"], ordered=True),
    },
    rules=[Less("x", "rate")],
)
INSIDE = {"x": 0.5, "rate": 0.1, "n": 20, "kernel": "rbf", "size": "s"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"x": 1.5}, {"x": Float(0.0, 1.5)}),
        ({"x": 0.3}, {"x": Float(0.0, 1.0)}),
        ({"rate": 1e-4}, {"rate": Float(1e-4, 1.0, log=True)}),
        ({"n": 45}, {"n": Int(10, 45)}),
        ({"kernel": "linear"}, {"kernel": Categorical(["rbf", "poly", 1, "linear"])}),
        ({"kernel": 2.5}, {"kernel": Categorical(["rbf", "poly", 1, 2.5])}),
        ({"kernel": True}, {}),  # stands for 1
        ({"kernel": "poly", "degree": 9}, {"degree": Int(2, 9, when={"kernel": "poly"})}),
        # What no wider bounds can hold.
        ({"rate": 0.0}, {}),
        ({"n": 1.5}, {}),
        ({"n": 2**60}, {}),
        ({"x": "big"}, {}),
        ({"x": float("nan")}, {}),
        ({"size": "l"}, {}),
        ({"momentum": 0.9}, {}),
    ],
)
def test_only_what_does_not_take_a_value_is_wider(changes, expected):
    wider = widened_space(SPACE, [INSIDE, INSIDE | changes])
    assert dict(wider) == dict(SPACE) | expected


def test_a_space_is_read_by_a_wider_one():
    """A wider space has the columns of both, so that each value has the same column wherever it comes from."""
    values = [INSIDE | {"x": 2.0}, INSIDE | {"kernel": "linear", "rate": 10.0}]
    wider = widened_space(SPACE, values)
    wider.require_encodes(SPACE)
    assert not wider.rules
    rows = dict(zip((column.name for column in wider.columns), wider.encode(values[1]).tolist(), strict=True))
    assert (rows["x"], rows["kernel.ohe._linear"]) == (0.25, 1.0)
    assert rows["rate"] == pytest.approx(1.0)
    inside = SPACE.layout_in(wider).columns(SPACE.point(INSIDE)[None])[0]
    np.testing.assert_allclose(inside, wider.encode(INSIDE), atol=1e-12)
    with pytest.raises(DataError):
        wider.check(INSIDE | {"size": "l"})
