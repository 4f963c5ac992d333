"""The cache of encoded configurations."""

import pytest

from dre_jax.errors import DataError
from dre_jax.tuning import Categorical, Float, Space
from dre_jax.tuning.trials.encoding import ParamsEncoder

SPACE = Space({"x": Float(0.0, 2.0), "k": Categorical([1, True, "1"])})


def test_a_configuration_that_changes_is_encoded_anew():
    encoder, params = ParamsEncoder(SPACE), {"x": 0.5, "k": "1"}
    assert encoder.encode(params).point[0] == 0.25
    assert encoder.encode(dict(params)) is encoder.encode(params)
    params["x"] = 1.0
    assert encoder.encode(params).point[0] == 0.5


def test_equal_choices_of_other_types_differ():
    encoder = ParamsEncoder(SPACE)
    identities = {encoder.encode({"x": 0.5, "k": choice}).identity for choice in (1, True, "1")}
    assert len(identities) == 3


def test_values_that_cannot_be_cached():
    with pytest.raises(DataError, match=r"k must be one of .*\[1\]"):
        ParamsEncoder(SPACE).encode({"x": 0.5, "k": [1]})
