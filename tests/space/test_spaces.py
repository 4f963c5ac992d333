"""Spaces of any kind: what is encoded comes back, what is decoded is valid, and columns are those of a slow loop."""

import dataclasses
import json
import math
from contextlib import nullcontext

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dre_jax.data import bundled
from dre_jax.data.columns import read_descriptor
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.space.descriptors import from_descriptor
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import Bool, Categorical, Float, Forbidden, Int, Interval, Space, read_space, write_space
from tests.error_messages import error_table
from tests.tuning.conftest import examples

pytestmark = pytest.mark.filterwarnings("ignore:the range of a hyperparameter should be:dre_jax.errors.DataWarning")
often = examples(150)
sometimes = examples(60)

CHOICES = st.text(max_size=3) | st.integers(-3, 3) | st.booleans() | st.none() | st.sampled_from([0.5, 1e-9, 2.0])


@st.composite
def numbers(draw, when):
    if draw(st.booleans()):
        low, high = sorted(draw(st.tuples(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))))
        log = low > 0 and draw(st.booleans())
        step = draw(st.integers(1, 7))
        return Int(low, high, log=log, step=step, when=when, default=draw(st.none() | st.just(low)))
    magnitude = st.floats(1e-6, 1e6)
    if draw(st.booleans()):
        low, high = sorted(draw(st.tuples(magnitude, magnitude)))
        likely = draw(st.none() | st.just((low, low)))
        step = draw(st.none() | st.floats(0.01, 1.0).map(lambda share: share * (high - low)))
        return Float(low, high, log=True, step=step or None, when=when, likely=likely)
    low, high = sorted(draw(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))))
    step = draw(st.none() | st.floats(0.01, 1.0).map(lambda share: share * (high - low)))
    return Float(low, high, step=step or None, when=when)


@st.composite
def spaces(draw):
    """Up to six hyperparameters, some of which depend on those before them."""
    result, leveled = {}, []
    names = st.text(st.characters(exclude_characters="."), min_size=1, max_size=3)
    for name in draw(st.lists(names, min_size=1, max_size=6, unique=True)):
        parents = draw(st.lists(st.sampled_from(leveled), max_size=2, unique=True)) if leveled else []
        when = {p: draw(st.lists(st.sampled_from(result[p].choices), min_size=1, max_size=2)) for p in parents} or None
        if draw(st.booleans()):
            choices = draw(st.lists(CHOICES, min_size=1, max_size=4, unique_by=lambda c: (type(c).__name__, c)))
            belief = draw(st.sampled_from([{}, {"likely": choices[-1:]}, {"default": choices[0]}]))
            result[name] = Categorical(choices, ordered=draw(st.booleans()), when=when, **belief)
            leveled.append(name)
        else:
            result[name] = draw(numbers(when))
    # In any order: parents need not come first.
    return Space(dict(draw(st.permutations(list(result.items())))))


def same(a, b):
    """Equal, of one type, and numbers to nine digits."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return type(a) is type(b) and a == b


def is_active(space, name, params):
    return all(
        is_active(space, parent, params) and any(same(params[parent], value) for value in values)
        for parent, values in space[name].when
    )


def assert_valid(space, params):
    """By the hyperparameters' own words."""
    assert list(params) == [name for name in space if is_active(space, name, params)]
    for name, value in params.items():
        parameter = space[name]
        if isinstance(parameter, Categorical):
            assert any(value is choice or same(value, choice) for choice in parameter.choices)
            continue
        assert type(value) is (int if isinstance(parameter, Int) else float)
        assert parameter.low <= value <= parameter.high
        if parameter.step is not None:
            steps = (value - parameter.low) / parameter.step
            assert abs(steps - round(steps)) < 1e-6


def slow_row(space, params):
    """The columns of a configuration by the rules: scaled numbers, flags, one-hot levels."""
    row = {}
    for name, parameter in space.items():
        value, active = params.get(name), name in params
        if isinstance(parameter, Categorical) and not parameter.ordered:
            texts = [choice if isinstance(choice, str) else json.dumps(choice) for choice in parameter.choices]
            for choice, text in zip(parameter.choices, texts, strict=True):
                text = json.dumps(text) if isinstance(choice, str) and texts.count(text) > 1 else text
                row[f"{name}.ohe._{text}"] = float(active and same(value, choice))
            if parameter.when:
                row[f"{name}.ohe._INVALID"] = float(not active)
            continue
        if isinstance(parameter, Categorical):
            at = next((i for i, choice in enumerate(parameter.choices) if active and same(value, choice)), 0)
            low, x, high = 0, at, len(parameter.choices) - 1
        else:
            low, x, high = parameter.low, value if active else parameter.low, parameter.high
            if parameter.log:
                low, x, high = map(math.log, (low, x, high))
        row[name] = (x - low) / (high - low) if high > low else 0.0
        if parameter.when:
            row[f"{name}.na"] = float(not active)
    return row


@often
@given(spaces(), st.randoms())
def test_encoding_round_trip(space, random):
    params = space.params(np.array([random.choice([0.0, 1.0, random.random()]) for _ in space]))
    assert_valid(space, params)
    row = space.encode(params)
    expected = slow_row(space, params)
    assert [column.name for column in space.columns] == list(expected)
    np.testing.assert_allclose(row, list(expected.values()), rtol=0, atol=1e-9)
    for again in (space.decode(row), space.params(space.point(params)), space.check(params)):
        assert list(again) == list(params)
        for name, value in params.items():
            near = isinstance(value, float) and isinstance(space[name], Float)
            reach = 1e-9 * (space[name].high - space[name].low) if near else 0.0
            assert same(again[name], value) or (near and abs(again[name] - value) <= reach)


@often
@given(spaces(), st.data())
def test_decoded_configurations_are_valid(space, data):
    row = data.draw(st.lists(st.floats(allow_nan=False), min_size=len(space.columns), max_size=len(space.columns)))
    point = data.draw(st.lists(st.floats(0, 1), min_size=len(space), max_size=len(space)))
    for params in (space.decode(row), space.params(np.array(point))):
        assert_valid(space, params)
        assert space.check(params) == params
        columns = space.encode(params)
        assert ((columns >= 0) & (columns <= 1)).all()


@sometimes
@given(spaces())
def test_json_brings_the_space_back(space):
    text = json.dumps(to_json(space), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == space
    assert list(again) == list(space)
    assert again.columns == space.columns
    # And the parameters alone, as people write them.
    assert from_json(json.loads(text)["parameters"]) == space


@pytest.mark.parametrize("name", bundled.spaces())
def test_rows_of_the_tables_that_ship_come_back(name):
    """Real rows, rounded to four digits when they were written; and codes through JSON."""
    space = from_descriptor(read_descriptor(bundled.path(), name))
    assert from_json(json.loads(json.dumps(to_json(space)))) == space
    for row in next(iter(bundled.load(name).test.values())).X[::7]:
        np.testing.assert_allclose(space.encode(space.decode(row)), row, rtol=0, atol=6e-5)


def test_scalars_and_arrays_of_other_libraries():
    assert Int(np.int64(1), jnp.int32(5), step=np.int8(2)) == Int(1, 5, step=2)
    assert Float(np.float32(0.5), np.array(2), log=np.bool_(True)) == Float(0.5, 2.0, log=True)
    choices = [1, "a", True]
    result = Categorical([np.int64(1), np.str_("a"), np.bool_(True)], when={"x": np.array([1, 2])})
    assert result == Categorical(choices, when={"x": [1, 2]})
    assert list(map(type, result.choices)) == [int, str, bool]
    assert Categorical(np.array([0.5, 1.0])) == Categorical([0.5, 1.0])
    assert type(Interval(above=np.float32(0.5)).above) is float
    space = Space({"x": Float(0.0, 1.0), "n": Int(1, 5)})
    assert space.check({"x": jnp.float32(0.5), "n": np.array(2)}) == {"x": 0.5, "n": 2}


def checked(params):
    space = Space({"x": Float(0, 2), "k": Categorical(["a", None]), "z": Int(1, 5, step=2, when={"k": "a"})})
    return lambda: space.check(params)


def decoded(row):
    return lambda: Space({str(i): Float(0, 1) for i in range(13)}).decode(row)


WRONG_ROWS = [0.5], [math.nan] * 13, "row", [["a"]], [[0.5], [0.5, 1.0]], [10**400] * 13, None
test_values_of_another_space = error_table(
    DataError,
    (checked({"x": 1.0, "y": 2}), "hyperparameters are x, k, z, but got 'y'"),
    (checked({"x": 1.0}), "but 'k' is missing"),
    (checked({"x": 1.0, "k": "b"}), "must be one of ['a', None], but got 'b'"),
    (checked({"x": 3.0, "k": None}), "x must be a number in [0.0, 2.0], but got 3.0"),
    (checked({"x": 10**400, "k": None}), "x must be a number in [0.0, 2.0], but got 1000"),
    (checked({"x": 1.0, "k": None, "z": 1}), "'z' is active only for k in ['a'], but got z=1"),
    (checked({"x": 1.0, "k": "a", "z": 2}), "whole number in [1, 5] and steps of 2 from the lower bound, but got 2"),
    (checked({"x": 1.0, "k": "a", "z": 1.5}), "z must be a whole number in [1, 5] and steps of 2 from the lower bound"),
    (checked([1.0]), "a configuration must map names to values"),
    *((decoded(row), "a row must hold 13 numbers, but got") for row in WRONG_ROWS),
)


@pytest.mark.parametrize(
    ("kind", "low", "high", "step", "last"),
    [
        (Float, 0, 0.3, 0.1, 0.3),
        (Float, -10.2, 10.2, 0.1, 10.2),
        (Int, 0, 10**13, 1, 10**13),
        (Int, 1, 10, 4, 9),
        (Float, 0, 1, 0.3, 0.9),
    ],
)
def test_the_upper_bound_is_a_value(kind, low, high, step, last):
    """And where it is not, a warning says which value is the last."""
    expected = pytest.warns(DataWarning, match=f"the upper bound is {last}") if last < high else nullcontext()
    with expected:
        parameter = kind(low, high, step=step)
    assert parameter.high == Space({"x": parameter}).params(np.ones(1))["x"] == last
    assert type(parameter.high) is type(last)
    assert dataclasses.replace(parameter) == parameter


@pytest.mark.parametrize(
    "parameter",
    [Float(1e-3, 0.1, log=True, step=1e-3), Float(0.5, 8.5, log=True, step=2.0), Int(1, 31, log=True, step=5)],
)
def test_values_at_steps_share_a_logarithmic_scale(parameter):
    """Each has what lies nearer to it than to others on the scale of the values, as the logarithm measures it."""
    space, n = Space({"x": parameter}), 20_000
    drawn = [space.params(np.array([(i + 0.5) / n]))["x"] for i in range(n)]
    values = np.arange(parameter.low, parameter.high + parameter.step / 2, parameter.step)
    edges = np.append(values - parameter.step / 2, values[-1] + parameter.step / 2)
    edges[0] = max(edges[0], parameter.low / 2)
    shares = np.diff(np.log(edges)) / np.log(edges[-1] / edges[0])
    assert len(set(drawn)) == len(values)
    np.testing.assert_allclose([np.isclose(drawn, value).mean() for value in values], shares, atol=2 / n)


@sometimes
@given(spaces(), st.integers(0, 5))
def test_equal_configurations_have_equal_points(space, seed):
    """As coordinates: what is no whole number of levels stays as it is."""
    assume(np.isfinite(space.size))
    by_point = {}
    for point in sobol_points(16, len(space), seed):
        params = space.params(point)
        by_point.setdefault(tuple(space.point(params)), []).append(json.dumps(params))
    assert all(len(set(equal)) == 1 for equal in by_point.values())
    assert len({equal[0] for equal in by_point.values()}) == len(by_point)


def test_written_and_read(tmp_path):
    space = Space({"x": Float(0.0, 1.0)})
    write_space(tmp_path / "space.json", space)
    assert read_space(tmp_path / "space.json") == space
    with pytest.raises(DataError, match="cannot be written"):
        write_space(tmp_path / "none" / "space.json", space)
    with pytest.raises(DataError, match="cannot be read"):
        read_space(tmp_path / "none.json")


test_invalid_spaces = error_table(
    ConfigError,
    (lambda: Space({}), "a space must map at least one name to a hyperparameter, but got {}"),
    (lambda: Float(2, 1), "low <= high must hold, but got low=2, high=1"),
    (lambda: Float(0, 1, log=True), "low > 0 must hold on a log scale, but got low=0, high=1"),
    (lambda: Int(0, 10**400), "bounds must be finite numbers"),
    (lambda: Int(2**60, 2**60 + 3), "within 2**53 of 0"),
    (lambda: Float(0, 1, log=True, step=0.1), "low > 0 must hold on a log scale"),
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
    (lambda: Int(0, 9, step=3, default=4), "number in [0, 9] and steps of 3 from the lower bound, but got 4"),
    (lambda: Float(0, 1, default="low"), "default must be a number in [0.0, 1.0], but got 'low'"),
    (lambda: Bool(likely="yes"), "likely must be one of [False, True], but got 'yes'"),
    (lambda: Categorical(["a"], default=None), "default must be one of ['a'], but got None"),
    (lambda: from_json({"format": 2, "parameters": {}}), "a space must be of format 1, but got 2"),
    (lambda: Space({"a": Bool()}, codes={"b": None}), "a code must be of a hyperparameter of the space, but got one"),
    (lambda: from_json({"C": [0, 1]}), "C: a hyperparameter must have a type"),
)
