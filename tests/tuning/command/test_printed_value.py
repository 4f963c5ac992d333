"""The value of a trial, out of what its command printed."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax.tuning.command.printed_value import read_value


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("", None),
        ("0.5", 0.5),
        ("1\n2\n3\n", 3.0),
        ("0.25\r\n", 0.25),
        ("  -3e-4  ", -3e-4),
        ("+.5", 0.5),
        ("1E3", 1000.0),
        ("accuracy: 0.93", 0.93),
        ("scores (0.1, 0.2)", 0.2),
        ("0.5\ntook 12.3 s", 0.5),
        ("0.5\nstep 10/10", 0.5),
        ("0.5\n2024-01-02", 0.5),
        ("10%|#  |\r0.5", 0.5),
        ("inf", math.inf),
        ("loss: -Infinity", -math.inf),
        ("1e999", math.inf),
        ("0x10", None),
        ('{"value": 0.5}', 0.5),
        ('{"loss": 2}', 2.0),
        ('{"loss": 2, "epoch": 1}', None),
        ('0.25\n{"loss": 2, "epoch": 1}', 0.25),
        ('{"value": 0.5}\n{"epoch": 3, "x": 1}', 0.5),
        ('{"value": true}', None),
        ('{"value": "0.5"}', None),
        ('{"value": -Infinity}', -math.inf),
        ('{"value": 1' + 400 * "0" + "}", math.inf),
        ('{"value": 1' + 5000 * "0" + "}", None),
        ("{broken 0.5", None),
        ('{"a":' * 100_000, None),
    ],
)
def test_by_hand(printed, value):
    assert read_value(printed) == value


def test_nan_is_not_passed_over():
    assert math.isnan(read_value("loss: 0.5\nloss: nan"))
    assert math.isnan(read_value('{"value": 0.5}\n{"value": NaN}'))


def test_the_name_of_the_value():
    line = '{"loss": 0.25, "accuracy": 0.9, "epoch": 3}'
    assert read_value(line, "accuracy") == 0.9
    assert read_value(line, "f1") is None


@given(st.floats(allow_nan=False), st.lists(st.sampled_from(["", "bye", "took 3 s", "{", '{"epoch": 1, "a": 2}'])))
def test_what_was_printed_comes_back(value, after):
    for line in (repr(value), f"loss: {value!r}", json.dumps({"value": value, "epoch": 2})):
        assert read_value("\n".join(["7.5", line, *after])) == value


@given(st.text())
def test_anything_is_a_value_or_none(text):
    found = read_value(text)
    assert found is None or isinstance(found, float)
