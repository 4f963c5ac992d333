"""Candidates that are refined by gradient, and suggestions in float64."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import zscore

from dre_jax.methods import find
from dre_jax.search import Candidates, Capabilities, make_history
from dre_jax.space.sobol import sobol_points
from dre_jax.suggest import Suggester
from dre_jax.suggest.candidates import CandidateConfig, canonicalize
from dre_jax.suggest.precision import precision_of, supports_double
from dre_jax.suggest.proposals import SuggestionInputs, TrialRecord, propose
from dre_jax.suggest.refinement import choose_starts, refine
from dre_jax.tuning import Categorical, Float, Int, Space
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.trials.objectives import objectives_of
from tests.known_methods import Valued
from tests.known_trials import complete_trial
from tests.oracles import fitted_process, log_augmented_improvement

SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "kernel": Categorical(["rbf", "poly"]),
        "degree": Int(2, 5),
        "coef": Float(1e-3, 1.0, log=True, when={"kernel": "poly"}),
        "y": Float(-1.0, 3.0),
    }
)
REAL = [i for i, part in enumerate(SPACE.layout.parts) if not part.levels]


def hill(history, x):
    """Returns values that fall with the distance from a top, at which no candidate is drawn."""
    return -jnp.sum((x - 0.31416) ** 2, axis=-1)


HILL, FLAT = Valued(hill, Capabilities(differentiable=True)), Valued(hill)


def proposals(method, starts, held=None, space=SPACE, n=8):
    evaluated = sobol_points(4, len(space), 3)
    rows = space.layout.columns(evaluated)
    failed = jnp.zeros((0, len(space))), jnp.zeros(0)
    record = TrialRecord(make_history(rows, np.arange(4.0)), jnp.asarray(evaluated), jnp.zeros(4, bool), *failed)
    config = CandidateConfig(even=64, steps=32, starts=starts)
    even = jnp.asarray(sobol_points(64, len(space), 0))
    fixed_values = None if held is None else jnp.asarray(held, jnp.float32)
    inputs = SuggestionInputs(None, record, even, jax.random.key(0), jnp.int32(0), fixed_values)
    return propose(method, space.layout, config, inputs, n)


@pytest.mark.slow
def test_refined_candidates_come_first_where_a_method_declares_a_gradient():
    drawn, refined = proposals(HILL, 0), proposals(HILL, 6)
    assert (refined.values >= drawn.values).all()
    x, y = (SPACE.layout.parts[i].column for i in (REAL[0], REAL[-1]))
    best = np.asarray(SPACE.layout.columns(np.asarray(refined.points[0])))
    np.testing.assert_allclose(best[[x, y]], 0.31416, atol=1e-4)
    jax.tree.map(np.testing.assert_array_equal, proposals(FLAT, 0), proposals(FLAT, 6))


def test_fixed_coordinates_stay():
    held = np.full(len(SPACE), np.nan)
    held[REAL[0]] = 0.75
    points = np.asarray(proposals(HILL, 6, held).points)
    np.testing.assert_array_equal(points[:, REAL[0]], np.float32(0.75))


def test_only_active_real_numbers_move():
    layout = SPACE.layout
    starts = np.asarray(canonicalize(layout, jnp.asarray(sobol_points(16, len(SPACE), 1))))
    rate = lambda points: hill(None, layout.columns(points))  # noqa: E731
    points, _ = jax.jit(lambda starts: refine(layout, rate, starts, None, 10, 1.0))(starts)
    moved = np.asarray(points) != starts
    active = np.stack(layout.active(starts), axis=-1)
    real = np.isin(np.arange(len(SPACE)), REAL)
    np.testing.assert_array_equal(moved, active & real[None, :])
    assert (~active).any()


def test_searches_end_within_a_radius_of_their_starts():
    """The hill's top is at 0.31416: each coordinate ends there, or at the end of its way to the top."""
    layout = CUBE.layout
    starts = np.random.default_rng(0).random((8, 6)).astype(np.float32)
    rate = lambda points: -jnp.sum((points - 0.31416) ** 2, axis=1)  # noqa: E731
    points, values = jax.jit(lambda starts: refine(layout, rate, starts, None, 20, 0.1))(starts)
    np.testing.assert_allclose(points, np.clip(0.31416, starts - 0.1, starts + 0.1), atol=1e-4)
    np.testing.assert_allclose(values, rate(points), atol=1e-6)


def test_starts_are_apart():
    rng = np.random.default_rng(0)
    points = np.vstack([0.5 + 0.001 * rng.random((40, 2)), rng.random((40, 2))]).astype(np.float32)
    values = np.concatenate([np.ones(40), np.zeros(40)]).astype(np.float32) + 0.01 * rng.random(80).astype(np.float32)
    starts = np.asarray(jax.jit(choose_starts, static_argnums=2)(points, values, 6))
    np.testing.assert_array_equal(starts[0], points[np.argmax(values)])
    apart = np.abs(starts[:, None] - starts[None]).max(axis=-1) + np.eye(6)
    assert apart[:3, :3].min() > 0.1
    assert apart.min() > 0.01


TOP = np.array([0.20, 0.15, 0.48, 0.28, 0.31, 0.66])
CUBE = Space({f"x{i}": Float(0.0, 1.0) for i in range(6)})


def two_peaks(x):
    """The higher peak is at TOP."""
    return float(np.exp(-4.0 * ((x - TOP) ** 2).sum()) + 0.5 * np.exp(-4.0 * ((x - (1.0 - TOP)) ** 2).sum()))


def evaluated(points):
    return [complete_trial(CUBE.params(x), two_peaks(x)) for x in points]


def crowded(n):
    """The trials of a search that has found the optimum: half even, half about the top, ever nearer."""
    rng = np.random.default_rng(0)
    near = TOP + rng.normal(0.0, 1.0, (n // 2, 6)) * np.geomspace(0.1, 0.005, n // 2)[:, None]
    return np.vstack([sobol_points(64, 6, 0)[: n - n // 2], np.clip(near, 0.0, 1.0)]).astype(np.float64)


class Reference:
    """Scikit-learn's Gaussian process in float64, and the logarithm of its augmented improvement."""

    def __init__(self, process, x, response):
        self.x, self.y = x, zscore(response)
        self.process = fitted_process(process, x, self.y)

    def log_improvement(self, new):
        mean, deviation = self.process.predict(np.atleast_2d(new), return_std=True)
        return log_augmented_improvement(mean, np.maximum(deviation, 3e-8), self.y.max(), np.sqrt(self.process.alpha))

    def best(self, record):
        """The largest of many points and of those that scipy finds from them, none of them a trial."""
        rng = np.random.default_rng(1)
        around = np.clip(self.x[np.argmax(self.y)] + rng.normal(0.0, 0.02, (200, 6)), 0.0, 1.0)
        starts = np.vstack([rng.random((2000, 6)), around])
        starts = starts[np.argsort(-self.log_improvement(starts))[:5]]
        result = [minimize(lambda x: -self.log_improvement(x)[0], x, bounds=[(0.0, 1.0)] * 6).x for x in starts]
        points = [x for x in [*starts, *result] if np.abs(record - x).max(axis=1).min() > 1e-6]
        return self.log_improvement(np.array(points)).max()


@pytest.mark.slow
def test_a_proposal_is_the_best_by_a_reference():
    config, points = EngineConfig(method="gp"), crowded(40)  # one process, as the reference
    engine = Engine(CUBE, objectives_of("maximize"), seed=0, config=config)
    method, responses = engine._method, np.array([two_peaks(x) for x in points])
    with precision_of(method) as dtype:
        assert dtype is np.float64
        history = make_history(points, responses, 64, dtype)
        tuned = jax.jit(method.fit_history)(None, history, jax.random.key(0))
        reference = Reference(tuned.process, points, responses)
        rng = np.random.default_rng(2)
        new = np.vstack([rng.random((50, 6)), np.clip(TOP + rng.normal(0, 0.01, (50, 6)), 0, 1)])
        values = jax.jit(method.score_candidates)(tuned, history, Candidates(new, np.ones(100, bool)))
    np.testing.assert_allclose(values, reference.log_improvement(new), rtol=1e-4, atol=1e-3)
    params = engine.propose(evaluated(points), number=40).params
    value = reference.log_improvement(np.array([params[name] for name in CUBE]))[0]
    assert value > reference.best(points) - np.log(1.5)


@pytest.mark.slow
def test_float64_ends_with_a_suggestion():
    """In this thread, and in others meanwhile; the same seed gives the same, and compiles nothing anew."""
    engine, observed = Engine(CUBE, objectives_of("maximize"), seed=0), evaluated(crowded(40))
    first = engine.propose(observed, number=40).params
    before = propose._cache_size()

    def ask(_):
        return engine.propose(observed, number=40).params, jnp.zeros(1).dtype

    with ThreadPoolExecutor(2) as pool:
        for result, dtype in pool.map(ask, range(4)):
            assert result == first
            assert dtype == jnp.float32
    assert propose._cache_size() == before
    assert jnp.zeros(1).dtype == jnp.float32


@pytest.mark.thorough
def test_the_handlers_suggester_computes_in_float64_too():
    points = crowded(40)
    point = Suggester(find("gp").make(), seed=0).observe_and_suggest(points, [two_peaks(x) for x in points])
    assert (point != point.astype(np.float32)).any()
    assert jnp.zeros(1).dtype == jnp.float32
    assert not supports_double(HILL)
