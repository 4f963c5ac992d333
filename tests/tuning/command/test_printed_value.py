"""The value of a trial in the output of its command."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_jax.tuning.command.printed_value import PrintedValue, read_value

INDENTED = json.dumps({"loss": 0.25, "epoch": 3}, indent=2)


@pytest.mark.parametrize(
    ("printed", "metric", "value"),
    [
        ("0.5", None, 0.5),
        ("1\n2\n3\n", None, 3.0),
        ("  -3e-4  ", None, -3e-4),
        ("+.5", None, 0.5),
        ("Accuracy: 0.95 (+/- 0.02)", None, 0.95),
        ("accuracy: 93.5%", None, 93.5),
        ("loss: 0.35.", None, 0.35),
        ("\x1b[1;32mloss:\x1b[0m 0.35\x1b[0m", None, 0.35),
        ("loss: 1,234.5", None, 1234.5),
        ("loss: [0.35]", None, 0.35),
        ("epoch: 3\n0.93", None, 0.93),
        ("INFO:root:loss=0.35", None, 0.35),
        ("0.5\ntook 12.3 s", None, 0.5),
        ("0.5\nstep 10/10", None, 0.5),
        ("0.5\n2024-01-02", None, 0.5),
        ("0.5\nfinished at: 19:05:33", None, 0.5),
        ("0.5\nserving http://localhost:6006/", None, 0.5),
        ("10%|#  |\r0.5", None, 0.5),
        ("loss: -Infinity", None, -math.inf),
        ("1e999", None, math.inf),
        ('{"value": 0.5}', None, 0.5),
        ('{"loss": 2}', None, 2.0),
        ('{"value": 0.5, "epoch": 3}', None, 0.5),
        ('{"value": 1' + 400 * "0" + "}", None, math.inf),
        ("loss: 0.5\nloss: nan", None, math.nan),
        ('{"value": 0.5}\n{"value": NaN}', None, math.nan),
        (INDENTED, "loss", 0.25),
        (f"started\n{INDENTED}\nbye", "epoch", 3.0),
        ("accuracy: 0.9\nseconds: 12", "accuracy", 0.9),
        ("epoch 3/10 - loss: 0.25 - val_loss: 0.3", "loss", 0.25),
        ("train loss: 0.1, val loss: 0.3", "val loss", 0.3),
        ("2024-01-02 INFO loss: 0.35", "loss", 0.35),
        ("{'eval_loss': 0.25, 'epoch': 3.0}", "eval_loss", 0.25),
        ('{"loss": 0.25, "train": {"loss": 0.1}}', "loss", 0.25),
        ('{"metrics": {"loss": 0.25}, "epoch": 3}', "loss", 0.25),
        ("loss: 0.5\nloss=0.4", "loss", 0.4),
        ("top-5 (test): 0.4", "top-5 (test)", 0.4),
    ],
)
def test_values(printed, metric, value):
    read = read_value(printed, metric)
    assert read.value == pytest.approx(value, rel=0, abs=0, nan_ok=True)
    assert read.line


@pytest.mark.parametrize(
    ("printed", "metric", "line"),
    [
        ("loss: 0,35", None, "loss: 0,35"),
        ("loss: 1,234", "loss", "loss: 1,234"),
        ("epoch: 3\n0,35", None, "0,35"),
        ("latency: 12ms", "latency", "latency: 12ms"),
        ("loss: 0.5\nloss: none", "loss", "loss: none"),
        ("loss: [0.1, 0.2]", None, "loss: [0.1, 0.2]"),
        ("accuracy: 0.9\nseconds: 12", None, "seconds: 12"),
        ("epoch: 3\naccuracy: 93.5%", None, "epoch: 3"),
        ("10\nloss: 0.3", None, "10"),
        ("epoch 1: 0.4\nepoch 2: 0.3", None, "epoch 2: 0.3"),
        ("train loss: 0.1, val loss: 0.3", "loss", "train loss: 0.1, val loss: 0.3"),
        ('0.25\n{"loss": 2, "epoch": 1}', None, '"epoch": 1'),
        ('{"train": {"loss": 1}, "val": {"loss": 2}}', "loss", '"val loss": 2'),
        ('{"value": "0.5"}', None, '"value": "0.5"'),
        ('{"value": true}', None, '"value": true'),
    ],
)
def test_ambiguous(printed, metric, line):
    """The message quotes the line, and names the option that chooses."""
    read = read_value(printed, metric)
    assert read.value is None
    assert read.ambiguous
    assert repr(line) in read.problem
    assert "--metric" in read.problem


@pytest.mark.parametrize(
    ("printed", "metric", "rule"),
    [
        ("", None, "its output is empty"),
        ("finished at 19:05:33", None, "its last line is 'finished at 19:05:33'"),
        ("0x10", None, "neither a number alone on a line"),
        ('{"a":' * 13_000, None, "neither a number alone on a line"),
        ("accuracy: 0.9", "loss", "no number with the name 'loss' (--metric), but 'accuracy'"),
        ("0.5", "loss", "no number with the name 'loss'"),
    ],
)
def test_no_value(printed, metric, rule):
    read = read_value(printed, metric)
    assert (read.value, read.ambiguous) == (None, False)
    assert rule in read.problem


@given(st.floats(allow_nan=False), st.lists(st.sampled_from(["", "bye", "took 3 s", "{", "at 12:30:01"])))
def test_a_printed_number_is_read_back(value, after):
    for line in (repr(value), json.dumps({"value": value, "epoch": 2}), f"loss: {value!r}"):
        before = ["epoch 7"] if line.startswith("loss") else ["7.5", "epoch: 7"]
        assert read_value("\n".join([*before, line, *after])).value == value


@given(st.text(), st.none() | st.text(min_size=1))
def test_any_text_has_a_value_or_a_problem(text, metric):
    read = read_value(text, metric)
    assert isinstance(read, PrintedValue)
    assert (read.value is None) == bool(read.problem)
