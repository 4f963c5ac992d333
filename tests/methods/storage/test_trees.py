"""Arrays by path, onto a tree whose class has more fields than when they were saved."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.methods.storage.trees import flatten, rename, restore


class Slope(NamedTuple):
    value: Any
    error: Any = None


class Line(NamedTuple):
    slope: Slope
    offset: Any = 0.0


ONE = np.ones(())
LIKE = {"params": Line(Slope(ONE, ONE), ONE)}


def test_a_field_that_is_none_by_default_may_be_missing():
    saved = flatten({"params": Line(Slope(2.0 * ONE, 3.0 * ONE), ONE)})
    del saved["params.slope.error"]
    assert restore(LIKE, saved) == {"params": Line(Slope(2.0, None), 1.0)}
    like = {"params": Line(Slope(ONE, Line(Slope(ONE), ONE)), ONE)}  # a tree in the place of that field
    assert restore(like, saved) == {"params": Line(Slope(2.0, None), 1.0)}
    for other in ("params.slope.value", "params.offset"):
        with pytest.raises(ConfigError, match=f"arrays differ: {other}"):
            restore(LIKE, {name: array for name, array in saved.items() if name != other})


def test_arrays_of_an_older_tree_are_renamed_or_left_out():
    saved = flatten({"params": {"line": Line(Slope(2.0 * ONE, 3.0 * ONE), ONE), "lines": ONE, "unused": Slope(ONE)}})
    names = {"params.line.slope": "params.gradient", "params.line.offset": "params.offset", "params.unused": None}
    expected = {"gradient": Slope(2.0 * ONE, 3.0 * ONE), "offset": ONE, "lines": ONE}
    assert rename(saved, names) == flatten({"params": expected})
