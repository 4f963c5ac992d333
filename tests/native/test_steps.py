"""The training steps in C++ against the scan that they stand for."""

from dataclasses import dataclass, fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.data import Task, build_table
from dre_jax.methods.dre import (
    FineTuneConfig,
    LossConfig,
    MetaTrainConfig,
    ModelConfig,
    Support,
    init,
    scores,
)
from dre_jax.methods.dre.backends import StepRequest, cpu
from dre_jax.methods.dre.backends.reference.scan import take_steps as scan_steps
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.lists import draw_steps_bits, read_lists
from dre_jax.optim.adam import StepSizes, step_sizes, zero_moments
from dre_jax.runtime import devices

pytestmark = pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")

KEY = jax.random.key(3)
SMALL = ModelConfig(members=3, hidden=(8, 8), phi=(8, 8), rho=(8, 4))
# Widths that fill no vector, one layer where there can be one, no deep set, and the sizes of the papers.
MODELS = {
    "small": SMALL,
    "odd": ModelConfig(members=2, hidden=(5, 19, 3), phi=(7, 33), rho=(9, 1)),
    "short": ModelConfig(members=2, hidden=(6,), phi=(4,), rho=(3,)),
    "no deep set": ModelConfig(members=2, hidden=(17, 5), context="none"),
    "response as given": replace(SMALL, response_scale="table"),
    "papers": ModelConfig(members=2),
    "one deep set": replace(SMALL, context="shared"),
}


def history(n, d, capacity, seed=0):
    """A history with ties, its empty slots full of what must not be read."""
    rng = np.random.default_rng(seed)
    response = np.sort(rng.integers(0, max(2, n // 2), n) / n)[::-1].astype(np.float32)
    level = np.unique(-response, return_inverse=True)[1].astype(np.int32)
    empty = capacity - n
    return (
        jnp.asarray(np.concatenate([rng.random((n, d)), np.full((empty, d), np.nan)]).astype(np.float32)),
        jnp.asarray(np.pad(response, (0, empty), constant_values=np.nan)),
        jnp.asarray(np.pad(level, (0, empty), constant_values=7)),
        jnp.asarray(np.arange(capacity) < n),
    )


def table(d=4, seed=0):
    rng = np.random.default_rng(seed)
    tasks = {f"{n}": Task(f"{n}", rng.random((n, d), np.float32), rng.integers(0, n, n) / n) for n in (6, 30, 200)}
    return build_table(tasks)


@partial(jax.jit, static_argnums=0)
def score(model, params, x):
    return scores(model, params, Support(x[:4], jnp.linspace(0.0, 1.0, 4), jnp.ones(4, bool)), x)


def centred(model, params, x):
    """Scores up to a constant: the loss does not see one, so that what adds one moves by rounding alone."""
    result = np.asarray(score(model, params, x))
    return result - result.mean(axis=1, keepdims=True)


def assert_same_ensemble(model, result, expected, x, before):
    moved = np.abs(centred(model, expected, x) - centred(model, before, x)).max()
    difference = np.abs(centred(model, result, x) - centred(model, expected, x)).max()
    assert moved > 1e-3
    assert difference < 1e-2 * moved


@pytest.mark.parametrize(
    ("name", "d", "lists", "own", "loss"),
    [
        pytest.param("small", 1, 3, False, LossConfig(weights="inverse_log"), marks=pytest.mark.thorough),
        ("odd", 3, 2, True, LossConfig()),
        pytest.param("short", 64, 1, True, LossConfig(name="mean_squared_error"), marks=pytest.mark.thorough),
        pytest.param("no deep set", 5, 2, True, LossConfig(), marks=pytest.mark.thorough),
        pytest.param("response as given", 16, 2, True, LossConfig(), marks=pytest.mark.thorough),
        pytest.param("papers", 9, 2, True, LossConfig(), marks=pytest.mark.thorough),
        ("one deep set", 6, 3, False, LossConfig(name="mean_squared_error", weights="none")),
    ],
)
def test_meta_training_is_that_of_the_scan(name, d, lists, own, loss):
    config = MetaTrainConfig(lists_per_step=lists, own_lists=own, n_support=5, n_query=20, loss=loss)
    model, data, steps = MODELS[name], table(d), 6
    params = init(model, d, KEY)

    @jax.jit
    def draw(key):
        return read_lists(data, draw_steps_bits(key, jnp.arange(steps), model.members, config), config)

    drawn, begin = draw(KEY), (params, jax.jit(zero_moments)(params))

    by_native = partial(cpu.take_steps, params_only=False)
    ways = [jax.jit(partial(way, model, loss.name, data.x, data.response)) for way in (by_native, scan_steps)]

    # Steps of no size: the moments are then sums over gradients at one place, each step's of other lists.
    still = StepSizes(np.zeros(steps, np.float32), np.ones(steps, np.float32))
    ((same, result), some_losses), ((_, expected), expected_losses) = (way(begin, drawn, still) for way in ways)
    np.testing.assert_allclose(some_losses, expected_losses, rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, same, params)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), result.first, expected.first)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-9), result.second, expected.second)
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected.first)) > 1e-2

    moving = step_sizes(config.learning_rates(), jnp.arange(steps))
    (end, some_losses), (expected_end, expected_losses) = (way(begin, drawn, moving) for way in ways)
    np.testing.assert_allclose(some_losses, expected_losses, rtol=2e-4)
    assert_same_ensemble(model, end[0], expected_end[0], data.x[:20], params)
    # The first moment is the gradient's running mean: of the last layer, no ensemble hides it.
    kernel = [moments.first.scorers["out_kernel"] for _, moments in (end, expected_end)]
    np.testing.assert_allclose(*kernel, atol=1e-2 * np.abs(kernel[1]).max())


# Which steps are done by the C++.


def request(model, loss="listmle", own=True, **others):
    sizes = {"columns": 3, "rows": 2, "support": 2, "query": 5, "lists_per_step": 1, "params_only": False}
    return StepRequest(model=model, loss=loss, own_lists=own, **sizes | others)


def test_the_native_steps_cover_every_field_of_the_model():
    @dataclass(frozen=True, kw_only=True)
    class Newer(ModelConfig):
        residual: bool = False

    assert set(cpu.MODEL_FIELDS) == {field.name for field in fields(ModelConfig)}
    assert all(values is None or getattr(SMALL, name) in values for name, values in cpu.MODEL_FIELDS.items())
    assert cpu.why_not(request(ModelConfig())) is None
    assert cpu.why_not(request(Newer())) == "residual=False is not supported"


@pytest.mark.parametrize(
    ("model", "loss", "own", "does"),
    [
        (SMALL, "listmle", True, True),
        (MODELS["no deep set"], "mean_squared_error", True, True),
        (MODELS["one deep set"], "listmle", False, True),
        (MODELS["one deep set"], "listmle", True, False),
        (replace(SMALL, range_limit=3.0), "listmle", True, False),
        (SMALL, "ranknet", True, False),
    ],
)
def test_supported_models_and_losses(model, loss, own, does):
    assert (cpu.why_not(request(model, loss, own)) is None) == does
    assert cpu.why_not(request(model, loss, own, dtype=jnp.bfloat16)) is not None
    assert cpu.why_not(request(model, loss, own, is_averaged=True)) is not None


both_deep_sets = pytest.mark.parametrize("name", ["small", pytest.param("one deep set", marks=pytest.mark.thorough)])


@both_deep_sets
def test_capacity_changes_nothing(name):
    model, tune = MODELS[name], jax.jit(fine_tune, static_argnums=(0, 1))
    config, params = FineTuneConfig(epochs=30), init(model, 5, KEY)
    expected, padded = (tune(model, config, params, *history(11, 5, capacity), KEY) for capacity in (11, 16))
    jax.tree.map(np.testing.assert_array_equal, padded, expected)


@both_deep_sets
def test_runs_side_by_side_are_the_runs_alone(name):
    model, keys = MODELS[name], jax.random.split(KEY, 3)
    tune = partial(fine_tune, model, FineTuneConfig(epochs=10), init(model, 5, KEY), *history(11, 5, 16))
    alone = jax.tree.map(lambda *runs: np.stack(runs), *map(jax.jit(tune), keys))
    jax.tree.map(np.testing.assert_array_equal, jax.jit(jax.vmap(tune))(keys), alone)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    config, params, past = FineTuneConfig(epochs=20), init(SMALL, 5, KEY), history(30, 5, 30)

    def tuned(threads):
        monkeypatch.setattr(devices, "cores", lambda: threads * jax.local_device_count("cpu"))
        return jax.jit(lambda key: fine_tune(SMALL, config, params, *past, key))(KEY)

    jax.tree.map(np.testing.assert_array_equal, tuned(3), tuned(1))  # as many as members, the most that have work
