"""Spaces that are none: each ends in one line of the library's own, never in another exception."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax.data import bundled
from dre_jax.data.columns import read_descriptor
from dre_jax.errors import ConfigError, DataError, DreError
from dre_jax.tuning import Bool, Categorical, Float, Forbidden, Int, Interval, Space, read_space, write_space
from dre_jax.tuning.space.descriptors import from_descriptor
from dre_jax.tuning.space.json_format import from_json, to_json
from tests.error_messages import error_table
from tests.tuning.conftest import NUMBERS, damaged, examples, json_values, leaves

pytestmark = pytest.mark.filterwarnings("ignore:the range of a hyperparameter should be:dre_jax.errors.DataWarning")
often = examples(400)
PLAIN = Space(
    {
        "C": Float(1e-3, 1e3, log=True, likely=(0.1, 10.0)),
        "kernel": Categorical(["rbf", "poly"], likely="rbf", default="rbf"),
        "degree": Int(2, 5, when={"kernel": ["poly"]}, default=3),
        "rate": Float(0.0, 0.5, step=0.1),
        "scale": Bool(when={"kernel": ["poly"]}),
    }
)
CODED = from_descriptor(read_descriptor(bundled.path(), "svm"))
WHOLE = [to_json(PLAIN), to_json(PLAIN)["parameters"], to_json(CODED)]

FIELDS = (
    "type low high log step when likely default choices ordered parameters format codes columns names scale empty "
    "missing unset"
)
WORDS = st.sampled_from([*FIELDS.split(), "float", "int", "categorical", "bool", "kernel", "poly", "C", "C.na"])
LEAVES, ANYTHING = leaves(WORDS), json_values(WORDS)


def assert_refused_or_usable(make):
    try:
        space = make()
    except DreError as error:
        lines = str(error).splitlines()
    else:  # it encodes and decodes without a fault, whatever strange bounds it has
        params = space.decode(np.zeros(len(space.columns)))
        assert np.isfinite(space.encode(params)).all()
        assert space.check(space.params(np.full(len(space), 0.5)))
        again = to_json(from_json(json.loads(json.dumps(to_json(space)))))
        assert again == to_json(space)
        lines = [""]
    assert len(lines) == 1


@often
@given(ANYTHING | damaged(WHOLE, WORDS, ANYTHING))
def test_malformed_json(document):
    assert_refused_or_usable(lambda: from_json(document))


@examples(200)
@given(NUMBERS, NUMBERS, NUMBERS, st.booleans(), st.sampled_from([Float, Int]))
def test_bounds_and_steps_of_any_size(low, high, step, log, kind):
    log_or_step = {"log": True} if log else {"step": step}
    assert_refused_or_usable(lambda: Space({"x": kind(*sorted((low, high), key=str), **log_or_step)}))


@examples(200)
@given(ANYTHING | st.lists(LEAVES), st.booleans() | ANYTHING, st.none() | ANYTHING)
def test_malformed_choices(choices, ordered, when):
    assert_refused_or_usable(lambda: Space({"x": Categorical(choices, ordered=ordered, when=when)}))


@examples(100)
@given(st.dictionaries(LEAVES, LEAVES | st.just(Float(0, 1)) | st.just(Bool(when={"x": 1})), max_size=3) | LEAVES)
def test_malformed_mappings(parameters):
    assert_refused_or_usable(lambda: Space(parameters))


def test_written_and_read(tmp_path):
    for space in (PLAIN, CODED):
        write_space(tmp_path / "space.json", space)
        assert read_space(tmp_path / "space.json") == space
    with pytest.raises(DataError, match="cannot be written"):
        write_space(tmp_path / "none" / "space.json", PLAIN)
    with pytest.raises(DataError, match="cannot be read"):
        read_space(tmp_path / "none.json")


test_messages = error_table(
    ConfigError,
    (lambda: Space({}), "a space must map at least one name to a hyperparameter, but got {}"),
    (lambda: Float(2, 1), "low <= high must hold, but got low=2, high=1"),
    (lambda: Float(0, 1, log=True), "low > 0 must hold on a log scale, but got low=0, high=1"),
    (lambda: Int(0, 10**400), "bounds must be finite numbers"),
    (lambda: Int(2**60, 2**60 + 3), "within 2**53 of 0"),
    (lambda: Float(0, 1, step=1e-300), "a range must have fewer than 1e+09 steps"),
    (lambda: Categorical([1.0, math.inf]), "text, a finite number, true, false or None, but got inf"),
    (lambda: Categorical([math.nan]), "but got nan"),
    (lambda: Categorical([1, 1.0, "1", 1]), "choices must differ"),
    (lambda: Space({"a": Float(0, 1, when={"b": 1})}), "'a' depends on 'b'"),
    (lambda: Space({"a": Float(0, 1, when={"b": 1}), "b": Float(0, 1)}), "can depend on values of a Categorical"),
    (lambda: Space({"a": Float(0, 1, when={"b": Interval(above=0)}), "b": Bool()}), "an Interval of a number"),
    (lambda: Interval(above=1, below=1), "bounds in order"),
    (lambda: Float(0, 1, when=[{"b": 1}, {}]), "each alternative"),
    (lambda: Forbidden({"b": Interval(above=1)}), "must map names to values"),
    (lambda: Space({"a": Bool(when={"b": True}), "b": Bool(when={"a": True})}), "must not depend on itself"),
    (lambda: Space({"a": Float(0, 1, when={"b": 2}), "b": Bool()}), "'a' depends on b = 2, but b must be one of"),
    (lambda: Space({"a": Bool(), "b": Float(0, 1, when={"a": True}), "b.na": Int(1, 2)}), "different names"),
    (lambda: from_json({"C": {"type": "float", "low": 1}}), "C: missing 1 required positional argument: 'high'"),
    (lambda: from_json({"C": {"type": "float", "low": 0, "high": 1, "Log": True}}), "but got Log"),
    (lambda: Float(0, 1, likely=(0.5, 2)), "likely must be two numbers in order, in [0.0, 1.0], but got (0.5, 2)"),
    (lambda: Int(0, 9, likely=(5, 2)), "likely must be two whole numbers in order, in [0, 9], but got (5, 2)"),
    (lambda: Int(0, 9, step=3, default=4), "default must be a whole number in [0, 9] and steps of 3, but got 4"),
    (lambda: Float(0, 1, default="low"), "default must be a number in [0.0, 1.0], but got 'low'"),
    (lambda: Bool(likely="yes"), "likely must be one of [False, True], but got 'yes'"),
    (lambda: Categorical(["a"], default=None), "default must be one of ['a'], but got None"),
    (lambda: from_json({"C": [0, 1]}), "C: a hyperparameter must have a type"),
)
