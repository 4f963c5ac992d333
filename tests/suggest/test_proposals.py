"""Candidates of spaces of every kind: valid, new, and even."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods import find
from dre_jax.search.history import make_history
from dre_jax.space.layout import unit_cube
from dre_jax.space.sobol import sobol_points
from dre_jax.suggest.candidates import (
    CandidateConfig,
    canonicalize,
    default_candidates,
    draw_step_numbers,
    steps_from,
)
from dre_jax.suggest.proposals import SuggestionInputs, TrialRecord, propose
from dre_jax.tuning import Bool, Categorical, Float, Int, Optimizer, Space
from tests.known_methods import Valued

SPACE = Space(
    {
        "C": Float(1e-3, 1e3, log=True),
        "kernel": Categorical(["rbf", "poly", "linear"]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "width": Int(16, 64, step=16),
        "size": Categorical(["s", "m", "l"], ordered=True),
        "scale": Bool(when={"kernel": ["poly", "rbf"]}),
        "depth": Float(-1.0, 3.0, when={"scale": True}),
    }
)
FINITE = Space({"a": Bool(), "b": Categorical(["x", "y", "z"], when={"a": True})})
CONFIG = CandidateConfig(even=64, steps=32, refinements=1)
SLOTS = 16
ALIKE = Valued(lambda history, x: jnp.zeros(len(x)))


def proposed(space, complete, running=(), failed=(), *, method=ALIKE, seed=0, trial=1, fixed=None):
    """What is proposed, best first, as configurations; with their values."""
    points, pending, avoid = (
        np.array([space.point(params) for params in group]).reshape(-1, len(space))
        for group in (complete, running, failed)
    )
    history = make_history(space.layout.columns(points), np.arange(float(len(points))), SLOTS)
    n, slots = len(points), np.arange(SLOTS)
    is_pending, radius = (slots >= n) & (slots < n + len(pending)), np.where(slots < len(avoid), 1e-6, -1.0)
    at_trials, at_failures = (
        np.pad(rows, ((0, SLOTS - len(rows)), (0, 0))).astype(np.float32)
        for rows in (np.vstack([points, pending]), avoid)
    )
    trials = TrialRecord(history, *jax.device_put((at_trials, is_pending, at_failures, radius.astype(np.float32))))
    even, key = jnp.asarray(sobol_points(CONFIG.even, len(space), seed)), jax.random.key(seed)
    at = None if fixed is None else jnp.asarray(space.coordinates(fixed), jnp.float32)
    result = propose(method, space.layout, CONFIG, SuggestionInputs(None, trials, even, key, jnp.int32(trial), at), 64)
    values = np.asarray(result.values)
    assert (values[:-1] >= values[1:]).all()
    return [space.params(point) for point in np.asarray(result.points)[values > -np.inf]]


def test_proposals_are_valid_and_new():
    everything = [SPACE.params(point) for point in sobol_points(16, len(SPACE), 3)]
    observations, running, failed = everything[:8], everything[8:11], everything[11:]
    for trial in range(4):
        result = proposed(SPACE, observations, running, failed, seed=trial, trial=trial)
        assert len(result) == 64
        for params in result:
            assert SPACE.check(params) == params
            assert params not in everything
        # Steps of every kind: all levels, and hyperparameters that are active for some only.
        assert {params["kernel"] for params in result} == {"rbf", "poly", "linear"}
        assert {params["width"] for params in result} == {16, 32, 48, 64}
        assert {params["degree"] for params in result if "degree" in params} == {2, 3, 4, 5}


def test_proposals_of_a_space_of_few():
    """What is left, and nothing once all of it is used up."""
    everything = [{"a": False}, *({"a": True, "b": b} for b in "xyz")]
    for left in everything:
        others = [params for params in everything if params != left]
        for facts, running, failed in ((others, (), ()), (others[:1], others[1:], ()), (others[:1], (), others[1:])):
            result = proposed(FINITE, facts, running, failed)
            assert result
            assert all(params == left for params in result)
    assert proposed(FINITE, everything) == []


def test_fixed_values_are_proposed_with_the_others_free():
    """Even where the method likes something else."""
    column = [column.name for column in SPACE.columns].index("kernel.ohe._poly")
    observations = [SPACE.params(point) for point in sobol_points(8, len(SPACE), 3)]
    result = proposed(
        SPACE, observations, method=Valued(lambda history, x: x[:, column]), fixed={"kernel": "rbf", "width": 32}
    )
    assert len(result) == 64
    assert {(params["kernel"], params["width"]) for params in result} == {("rbf", 32)}
    assert len({params["C"] for params in result}) > 32
    assert {params["scale"] for params in result} == {False, True}


def test_equal_configurations_are_one_point():
    points = sobol_points(256, len(SPACE), 0)
    same = np.asarray(jax.jit(canonicalize, static_argnums=0)(SPACE.layout, jnp.asarray(points)))
    expected = [SPACE.point(SPACE.params(point)) for point in points]
    levels = [i for i, part in enumerate(SPACE.layout.parts) if part.levels]
    np.testing.assert_allclose(same, np.array(expected), rtol=0, atol=1e-6)
    assert len(np.unique(same[:, levels], axis=0)) < len(points)


def test_layouts_are_the_same_inside_a_compiled_program():
    layout = SPACE.layout
    # Of values, in the middle of their part: float32 may fall to the other side of an edge.
    points = np.array([SPACE.point(SPACE.params(point)) for point in sobol_points(256, len(SPACE), 1)])
    compiled = jax.jit(lambda p: (layout.columns(p), layout.active(p)))
    columns, active = compiled(jnp.asarray(points, jnp.float32))
    np.testing.assert_array_equal(np.stack(active), layout.active(points))
    np.testing.assert_allclose(columns, layout.columns(points), rtol=0, atol=2e-6)
    np.testing.assert_allclose(columns, [SPACE.encode(SPACE.params(point)) for point in points], rtol=0, atol=2e-6)


def test_steps_stay_where_nothing_is_active():
    """A step changes at least one hyperparameter that is active, and leaves the others alone."""
    start = SPACE.point({"C": 1.0, "kernel": "linear", "width": 32, "size": "m"})
    config = CandidateConfig(even=64, steps=64, changed=0.3)
    numbers = draw_step_numbers(config, len(SPACE), jnp.float32, jax.random.key(0), 0)
    step = jax.jit(steps_from, static_argnums=(0, 1))
    points = step(SPACE.layout, config, jnp.asarray(start, jnp.float32)[None], jnp.int32(1), numbers)
    moved = [SPACE.params(point) for point in np.asarray(points)]
    changed = np.abs(np.asarray(points) - start[None].astype(np.float32)) > 1e-7
    active = np.array(SPACE.layout.active(start))
    assert changed[:, active].any(axis=1).all()
    assert not changed[:, active].all()
    stayed = [params for params in moved if params["kernel"] == "linear"]
    assert stayed
    assert all(set(params) == {"C", "kernel", "width", "size"} for params in stayed)


@pytest.mark.parametrize(
    ("space", "least"),
    [
        (Space({"x": Int(2**50, 2**50 + 9)}), 10),  # float32 has one number for all of them
        (Space({"x": Int(0, 2**53 - 1)}), 40),  # more levels than 32 bits count
        (Space({"x": Int(1, 2**53, log=True)}), 20),
        (Space({"x": Float(1e15, 1e15 + 4.0, step=0.5)}), 9),
    ],
)
def test_whole_numbers_of_any_size(space, least):
    """What is compiled draws all of them, and encodes them as float64 does."""
    points = sobol_points(64, 1, 0)
    same = np.asarray(jax.jit(canonicalize, static_argnums=0)(space.layout, jnp.asarray(points)))
    columns = np.asarray(jax.jit(lambda points: space.layout.columns(points))(jnp.asarray(same)))
    result = [space.params(point) for point in same]
    assert len({params["x"] for params in result}) >= least
    np.testing.assert_allclose(columns, [space.encode(params) for params in result], rtol=0, atol=1e-6)
    assert [space.check(params) for params in result] == result


class TestManyHyperparameters:
    """Spaces of more than a dozen, without past tasks."""

    @pytest.mark.parametrize(("trial", "mean"), [(0, 20.0), (39, 20.0), (40, 2.0)])
    def test_how_many_of_the_best_are_changed(self, trial, mean):
        """Half of the coordinates, and from as many trials on one or two: one is drawn, and each other one in n."""
        layout = unit_cube(40)
        config = default_candidates(find("gp").make(), layout)
        numbers = draw_step_numbers(config, 40, jnp.float32, jax.random.key(1), trial)
        parents = jnp.asarray(np.random.default_rng(0).random((4, 40)), jnp.float32)
        points = np.asarray(steps_from(layout, config, parents, jnp.int32(4), numbers))
        n_changed = (points[:, None] != np.asarray(parents)[None]).sum(axis=2).min(axis=1)
        assert config.even < config.steps
        assert n_changed.min() == 1 or trial < 40
        assert n_changed.mean() == pytest.approx(mean, rel=0.1)

    def test_others_have_candidates_as_before(self):
        gp, past, random = (find(name).make() for name in ("gp", "hedged-prior", "random"))
        assert default_candidates(gp, unit_cube(12)).starts > 0
        assert default_candidates(past, unit_cube(40)) == default_candidates(past, unit_cube(12))
        assert default_candidates(random, unit_cube(40)) == CandidateConfig()

    def test_only_real_numbers_alone_are_refined(self):
        """Near their starts."""
        method, numbers = find("gp").make(), {f"x{i}": Float(0.0, 1.0) for i in range(20)}
        refined = default_candidates(method, Space(numbers).layout)
        assert refined.starts > 0
        assert refined.radius < 0.2
        assert default_candidates(method, Space({**numbers, "k": Int(1, 9)}).layout).starts == 0

    @pytest.mark.slow
    def test_choices_are_explored(self):
        """Of nine choices beside others, the last trials of a search have more than a few combinations."""
        space = Space(
            {f"x{i}": Float(0.0, 1.0) for i in range(8)} | {f"c{i}": Categorical(tuple("abcd")) for i in range(9)}
        )
        optimizer = Optimizer(space, seed=0)

        def loss(trial):
            distance = sum((trial[f"x{i}"] - 0.3) ** 2 for i in range(8))
            return distance + sum(0.2 * "abcd".index(trial[f"c{i}"]) for i in range(9))

        optimizer.optimize(loss, 30)
        choices = [tuple(trial[f"c{i}"] for i in range(9)) for trial in optimizer.trials]
        assert len({*choices[-20:]}) > 5
        assert min(map(loss, optimizer.trials[10:])) < 0.8 * min(map(loss, optimizer.trials[:10]))
