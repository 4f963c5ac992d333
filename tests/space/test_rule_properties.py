"""Random spaces with random conditions and rules: against a slow loop over names, and NumPy against JAX."""

import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.projection import allowed_points, move
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import (
    Allowed,
    Bool,
    Categorical,
    Count,
    Float,
    Forbidden,
    Formula,
    Int,
    Interval,
    Less,
    Permutation,
    Space,
    Sum,
)
from tests.tuning.conftest import examples

BOUNDS = st.sampled_from([(0.0, 1.0), (-5.0, 3.0), (0.5, 200.0), (1e-4, 10.0), (2.0, 9.0), (-1e4, 1e5)])


@st.composite
def numbers(draw, when):
    low, high = draw(BOUNDS)
    if draw(st.booleans()):
        low, high = math.ceil(low), math.ceil(high)
        return Int(low, high, log=low > 0 and draw(st.booleans()), when=when)
    log = low > 0 and draw(st.booleans())
    return Float(low, high, log=log, step=None if log else draw(st.sampled_from([None, (high - low) / 8])), when=when)


@st.composite
def conditions(draw, parameters):
    """None, a condition, or two alternatives, on hyperparameters that exist."""
    alternatives = []
    for name in draw(st.lists(st.sampled_from(sorted(parameters)), max_size=2)) if parameters else ():
        parameter = parameters[name]
        if isinstance(parameter, Permutation):  # on which nothing can depend
            continue
        if isinstance(parameter, Categorical):
            alternatives.append({name: draw(st.sampled_from(parameter.choices))})
        else:
            middle = (parameter.low + parameter.high) / 2
            alternatives.append({name: draw(st.sampled_from([Interval(above=middle), Interval(below=middle)]))})
    return alternatives or None


@st.composite
def plain_spaces(draw):
    parameters = {}
    for name in "abcdef"[: draw(st.integers(2, 6))]:
        when = draw(st.none() | conditions(parameters))
        kind = draw(st.sampled_from(["number", "number", "number", "choice", "bool", "order"]))
        choices = Categorical(["x", None, 1, True], ordered=draw(st.booleans()), when=when)
        order = Permutation(["p", 1, None], when=when)
        kinds = {"number": draw(numbers(when)), "choice": choices, "bool": Bool(when=when), "order": order}
        parameters[name] = kinds[kind]
    return Space(parameters)


@st.composite
def rules(draw, space):
    """A rule that some points of a space satisfy."""
    numeric = [name for name in space if isinstance(space[name], (Float, Int))]
    leveled = [name for name in space if isinstance(space[name], Categorical) or getattr(space[name], "step", None)]
    corner = space.params(np.array(draw(st.lists(st.floats(0, 1), min_size=len(space), max_size=len(space)))))
    kind = draw(st.sampled_from(["less", "sum", "count", "formula", "allowed", "forbidden"]))
    if kind == "allowed":
        names = draw(st.lists(st.sampled_from(list(space)), min_size=1, max_size=3, unique=True))
        names += [parent for name in names for parent in space[name].parents if parent not in names]
        rows = [space.params(point) for point in sobol_points(8, len(space), draw(st.integers(0, 99)))]
        rows = [{name: row[name] for name in names if name in row} for row in rows]
        return Allowed([row for row in rows if row] or reject())
    if kind == "forbidden":
        names = [name for name in leveled if name in corner][:2]
        return Forbidden({name: corner[name] for name in names}) if names else reject()
    if kind == "count":
        names = draw(st.lists(st.sampled_from([*numeric, *leveled] or reject()), min_size=1, max_size=4, unique=True))
        low, high = sorted(draw(st.tuples(*[st.integers(0, len(names))] * 2)))
        bounds = draw(st.sampled_from([{"at_least": low, "at_most": high}, {"at_most": high}, {"equals": low}]))
        return Count({name: unused_value(space[name]) for name in names}, **bounds)
    names = draw(st.permutations(numeric))[: 2 + (kind == "sum")]
    if len(names) < 2:
        reject()
    if kind == "formula":
        return Formula(draw(formulas(space, *names[:2], corner)))
    if kind == "less":
        return Less(*names[:2], or_equal=draw(st.booleans()))
    weights = {name: draw(st.sampled_from([1, 2.5, -1])) for name in names}
    total = math.fsum(weight * corner.get(name, 0.0) for name, weight in weights.items())
    exact = (
        [{"equals": total}] if all(isinstance(space[name], Float) and not space[name].step for name in names) else []
    )
    return Sum(weights, **draw(st.sampled_from([{"at_most": total}, {"at_least": total}, *exact])))


@st.composite
def formulas(draw, space, a, b, corner):
    """A formula of two numbers and a choice, which a configuration satisfies."""
    left = draw(st.sampled_from([f"{a} * {b}", f"{a} - 0.5 * abs({b}) ** 1.5", f"max({a}, {b}) / (1 + {b} ** 2)"]))
    bound = computed(left, {a: 0.0, b: 0.0} | corner) + draw(st.sampled_from([0.0, 0.1]))
    text = f"-1e12 < {left} <= {bound!r}"
    choices = [name for name in space if isinstance(space[name], Categorical)]
    if choices and draw(st.booleans()):
        name = draw(st.sampled_from(choices))
        text = f"{text} or {name if len(space[name].choices) == 2 else f'{name} == None'}"
    return text


def computed(formula, values):
    """Returns the result of Python."""
    return eval(formula, {"abs": abs, "max": max, "__builtins__": {}}, values)


def unused_value(parameter):
    if isinstance(parameter, Categorical):
        return False if len(parameter.choices) == 2 else "x"
    return 0 if parameter.low <= 0 and parameter.step in (None, 1) else parameter.low


def reject():
    assume(False)


@st.composite
def spaces(draw, most_rules=3):
    space = draw(plain_spaces())
    chosen = draw(st.lists(rules(space), min_size=1, max_size=most_rules))
    try:
        return Space(dict(space), rules=chosen)
    except ConfigError:  # nothing satisfies the rules
        return reject()


def same(a, b):
    if isinstance(a, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
    return type(a) is type(b) and a == b


def holds(rule, params):
    """Returns whether a rule allows a configuration, by its words."""
    if isinstance(rule, Forbidden):
        return not all(name in params and any(same(params[name], v) for v in values) for name, values in rule.values)
    if isinstance(rule, Less):
        if rule.smaller not in params or rule.larger not in params:
            return True
        gap = params[rule.larger] - params[rule.smaller]
        return gap >= 0 or math.isclose(gap, 0, abs_tol=1e-9) if rule.or_equal else gap > 0
    values = {name: params[name] for name in rule.names if name in params}
    if isinstance(rule, Formula):
        return len(values) < len(rule.names) or computed(rule.formula, values)
    if isinstance(rule, Count):
        low, high = rule.bounds
        return low <= sum(not same(value, dict(rule.unused)[name]) for name, value in values.items()) <= high
    if isinstance(rule, Allowed):
        return any(all(n in row and same(row[n], v) for n, v in values.items()) for row in map(dict, rule.rows))
    terms = [dict(rule.weights)[name] * value for name, value in values.items()]
    low, high = rule.bounds
    tolerance = 2e-6 * max(map(abs, [*terms, *(b for b in (low, high) if math.isfinite(b))]), default=0.0)
    return not terms or low - tolerance <= math.fsum(terms) <= high + tolerance


def drawn(space, n=16):
    return allowed_points(space.layout, lambda n: sobol_points(n, len(space), 0), n)


@examples(45)
@given(spaces())
def test_drawn_points_are_configurations_that_the_rules_allow(space):
    for point in drawn(space):
        params = space.params(point)
        assert space.check(params) == params
        assert all(holds(rule, params) for rule in space.rules)


def can_move(space):
    """Several rules, forbidden combinations and conditional numbers can exclude a point that is moved."""
    names = [name for rule in space.rules for name in rule.names]
    return (
        len(space.rules) == 1
        and not isinstance(space.rules[0], (Forbidden, Formula))
        and not any(space[name].when for name in names)
    )


@examples(45)
@given(spaces(most_rules=1), st.integers(0, 99))
def test_moved_points_satisfy_a_rule(space, seed):
    assume(can_move(space))
    for spread in (False, True):
        for point in move(space.layout, sobol_points(16, len(space), seed), spread=spread):
            params = space.params(point)
            assert space.allows(params)
            assert holds(space.rules[0], params)


@examples(45)
@given(spaces(), st.integers(0, 99))
def test_names_and_points_have_the_same_rules(space, seed):
    """Of any points: those that a rule forbids, too."""
    points = np.vstack([sobol_points(32, len(space), seed), drawn(space)])
    for point, is_allowed in zip(points, space.layout.is_allowed(points), strict=True):
        params = space.params(point)
        assert is_allowed <= space.allows(params)
        assert space.allows(params) == all(holds(rule, params) for rule in space.rules)
        assert [name in params for name in space.sequence] == [bool(m) for m in space.layout.active(point)]
        assert all((name in params) == space.is_active(name, params) for name in space)


@examples(30)
@given(spaces(), st.integers(0, 99))
def test_encoding_and_decoding_are_inverse(space, seed):
    for point in [*sobol_points(8, len(space), seed), *drawn(space, 8)]:
        params = space.params(point)
        for again in (space.params(space.point(params)), space.decode(space.encode(params))):
            assert list(again) == list(params)
            for name, value in params.items():
                exact = value == again[name] and type(value) is type(again[name])
                assert exact or value == pytest.approx(
                    again[name], rel=1e-9, abs=1e-9 * (space[name].high - space[name].low)
                )


@examples(9)
@given(spaces(), st.integers(0, 99))
def test_a_compiled_program_has_the_same_rules(space, seed):
    """In float32, where the answer on the host is not a matter of the last digits."""
    points = np.vstack([sobol_points(128, len(space), seed), drawn(space, 32)]).astype(np.float32)
    answers = lambda xp: lambda u: xp.stack([*space.layout.active(u), space.layout.is_allowed(u)])  # noqa: E731
    expected = answers(np)(points.astype(np.float64))
    noise = np.random.default_rng(seed).uniform(-1e-4, 1e-4, (8, *points.shape))
    near = [answers(np)(np.clip(points.astype(np.float64) + e, 0, 1)) for e in noise]
    is_clear = np.all([other == expected for other in near], axis=0)
    compiled = np.asarray(jax.jit(answers(jnp))(jnp.asarray(points)))
    np.testing.assert_array_equal(compiled[is_clear], expected[is_clear])
    moved = np.asarray(jax.jit(lambda u: move(space.layout, u))(jnp.asarray(points)))
    if can_move(space):
        assert np.asarray(jax.jit(answers(jnp))(jnp.asarray(moved)))[-1].all()
        assert all(space.allows(space.params(point)) for point in moved)


@examples(30)
@given(spaces(), st.integers(0, 99))
def test_a_space_of_a_file_gives_the_same_answers(space, seed):
    points = sobol_points(32, len(space), seed)
    for again in (from_json(json.loads(json.dumps(to_json(space)))), pickle.loads(pickle.dumps(space))):
        assert again == space
        assert (again.layout.is_allowed(points) == space.layout.is_allowed(points)).all()
        for point in points:
            params = space.params(point)
            assert again.params(point) == params
            assert again.allows(params) == space.allows(params)


WIDE = Float(0.0, 1e6)


@pytest.mark.parametrize(
    ("parameters", "rule", "allowed", "forbidden"),
    [
        ((Float(1e-3, 10.0, log=True), Float(0.1, 7.0)), Less("a", "b", or_equal=True), (0.3, 0.3), (0.3, 0.29999999)),
        ((Float(1e-3, 10.0, log=True), Float(0.1, 7.0)), Less("a", "b"), (0.3, 0.30000001), (0.3, 0.3)),
        ((WIDE, WIDE), Sum(["a", "b"], at_most=1.0), (0.7, 0.3), (0.9, 0.2)),
        ((WIDE, WIDE), Allowed([{"a": 3.0, "b": 5.0}, {"a": 3.5, "b": 6.0}]), (3.5, 6.0), (3.5, 5.0)),
        ((Int(0, 10**7), WIDE), Allowed([{"a": 7, "b": 5.0}]), (7, 5.0), (8, 5.0)),
        ((Float(0.0, 1e-6, step=1e-7), Bool()), Forbidden({"a": 3e-7, "b": True}), (2e-7, True), (3e-7, True)),
        ((Categorical([1, True]), Bool()), Forbidden({"a": True, "b": True}), (1, True), (True, True)),
        ((Float(0.0, 3.0, step=0.1), WIDE), Formula("a + b >= 0.9"), (0.3, 0.6000000000000001), (0.3, 0.6)),
        ((Int(0, 10**7), Int(1, 9)), Formula("a % b == 0 and a > 0"), (9999999, 9), (9999998, 9)),
        ((WIDE, WIDE), Count(["a", "b"], equals=1), (0.0, 3.0), (1e3, 3.0)),
        ((Int(0, 9), Int(0, 9)), Sum({"a": 1, "b": 2}, equals=5), (1, 2), (2, 2)),
    ],
)
def test_typed_values_are_compared_as_they_are(parameters, rule, allowed, forbidden):
    """On the boundaries of rules, and between numbers that are close for their range."""
    space = Space(dict(zip("ab", parameters, strict=True)), rules=[rule])
    assert tuple(space.check(dict(zip("ab", allowed, strict=True))).values()) == allowed
    with pytest.raises(DataError, match="must satisfy"):
        space.check(dict(zip("ab", forbidden, strict=True)))
