"""The compiled training steps against the scan that they stand for."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import devices, native
from dre_jax.data import Task, build_table
from dre_jax.model import ModelConfig, Support, init, scores
from dre_jax.training import FineTuneConfig, LossConfig, MetaTrainConfig, fine_tune
from dre_jax.training import compiled as compiled_module
from dre_jax.training.adam import StepSizes, zero_moments
from dre_jax.training.lists import draw_step_bits, step_lists
from dre_jax.training.steps import _compiled_steps, _scan_steps, start, train

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
    "limited range": replace(SMALL, range_limit=3.0, range_slope=0.4),
}


@pytest.fixture
def by_xla(monkeypatch):
    """Turns the compiled steps off, for what is traced from then on."""

    def off():
        monkeypatch.setattr(compiled_module.native, "available", lambda: False)
        jax.clear_caches()

    yield off
    jax.clear_caches()


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
    tasks = {
        f"t{i}": Task(f"t{i}", rng.random((n, d), np.float32), rng.integers(0, n, n) / n)
        for i, n in enumerate((6, 30, 200))
    }
    return build_table(tasks)


def centred(model, params, x):
    """Scores up to a constant: the loss does not see one, so that what adds one moves by rounding alone."""
    support = Support(x[:4], jnp.linspace(0.0, 1.0, 4), jnp.ones(4, bool))
    found = np.asarray(scores(model, params, support, x))
    return found - found.mean(axis=1, keepdims=True)


def assert_same_ensemble(model, found, expected, x, before):
    moved = np.abs(centred(model, expected, x) - centred(model, before, x)).max()
    difference = np.abs(centred(model, found, x) - centred(model, expected, x)).max()
    assert moved > 1e-3
    assert difference < 1e-2 * moved


@pytest.mark.parametrize(
    ("name", "d"),
    [
        ("small", 1),
        ("odd", 3),
        ("short", 64),
        ("no deep set", 5),
        ("response as given", 16),
        ("papers", 9),
        ("one deep set", 6),
        ("limited range", 4),
    ],
)
def test_the_gradient_is_that_of_the_scan(name, d):
    # Steps of no size: the moments are then sums over gradients at one place, each step's of other lists.
    model, own = MODELS[name], name != "one deep set"
    config = MetaTrainConfig(lists_per_step=2, n_support=5, n_query=20, own_lists=own)
    data, steps = table(d), 4
    params = init(model, d, KEY)
    bits = jax.vmap(lambda key: draw_step_bits(key, model.members, config))(jax.random.split(KEY, steps))
    carry = params, zero_moments(params)
    inputs = data, carry, step_lists(data, bits, config), StepSizes(jnp.zeros(steps), jnp.ones(steps))
    (same, found), losses = jax.jit(partial(_compiled_steps, model, config))(*inputs)
    (_, expected), expected_losses = jax.jit(partial(_scan_steps, model, config))(*inputs)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, same, params)
    for one, other in zip(jax.tree.leaves(found.first), jax.tree.leaves(expected.first), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    for one, other in zip(jax.tree.leaves(found.second), jax.tree.leaves(expected.second), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-9)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(expected.first)) > 1e-2


@pytest.mark.parametrize(
    ("name", "n", "d", "loss"),
    [
        ("odd", 17, 3, LossConfig()),
        ("no deep set", 23, 5, LossConfig(name="ranknet", weights="none")),
        ("papers", 40, 16, LossConfig(name="mean_squared_error", weights="none")),
        ("one deep set", 20, 4, LossConfig(weights="inverse_log")),
        ("limited range", 20, 4, LossConfig()),
    ],
)
def test_fine_tuning_is_that_of_the_scan(name, n, d, loss, by_xla):
    model, config = MODELS[name], FineTuneConfig(epochs=5, learning_rate=1e-3, loss=loss)
    params, past = init(model, d, KEY), history(n, d, n + 3)
    tune = jax.jit(fine_tune, static_argnums=(0, 1))
    found = tune(model, config, params, *past, KEY)
    by_xla()
    # A scan multiplies what is in empty slots by zero.
    expected = tune(model, config, params, *(jnp.nan_to_num(a) for a in past[:2]), *past[2:], KEY)
    x = jax.random.uniform(KEY, (20, d))
    assert_same_ensemble(model, found, expected, x, params)


@pytest.mark.parametrize(
    ("name", "loss", "lists", "own"),
    [
        ("small", LossConfig(weights="inverse_log"), 1, True),
        ("small", LossConfig(weights="inverse_log", ties="shuffle"), 3, True),
        ("small", LossConfig(weights="inverse_log"), 3, False),
        ("small", LossConfig(name="listnet"), 1, True),
        ("small", LossConfig(name="ranknet", ties="shuffle"), 2, True),
        ("small", LossConfig(name="subset_regression"), 1, False),
        ("small", LossConfig(name="mean_squared_error"), 2, True),
        ("one deep set", LossConfig(), 3, False),
        ("one deep set", LossConfig(), 2, True),  # which the scan does
    ],
)
def test_meta_training_is_that_of_the_scan(name, loss, lists, own, by_xla):
    model = MODELS[name]
    config = MetaTrainConfig(lists_per_step=lists, own_lists=own, n_support=5, n_query=20, loss=loss)
    data = table()
    before = start(model, config, 4, KEY).params

    def steps():
        state, losses = train(model, config, data, start(model, config, 4, KEY), KEY, 6)
        return jax.tree.map(np.asarray, (state, losses))

    state, losses = steps()
    by_xla()
    expected, expected_losses = steps()
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-5)
    assert_same_ensemble(model, state.params, expected.params, data.x[:20], before)
    # The first moment is the gradient's running mean: of the last layer, no ensemble hides it.
    kernel = [s.moments.first.scorers["out_kernel"] for s in (state, expected)]
    np.testing.assert_allclose(*kernel, atol=2e-3 * np.abs(kernel[1]).max())


@pytest.mark.parametrize(("name", "own", "does"), [("one deep set", True, False), ("one deep set", False, True)])
def test_who_does_it(name, own, does):
    x = jnp.zeros((2, 3))
    assert compiled_module.serves(MODELS[name], x, own_lists=own) == does
    assert compiled_module.serves(SMALL, x, own_lists=own)


@pytest.mark.parametrize("name", ["small", "one deep set"])
def test_padding_changes_nothing(name):
    model, tune = MODELS[name], jax.jit(fine_tune, static_argnums=(0, 1))
    config, params = FineTuneConfig(epochs=30), init(model, 5, KEY)
    results = [tune(model, config, params, *history(11, 5, capacity), KEY) for capacity in (11, 16, 40)]
    for padded in results[1:]:
        jax.tree.map(np.testing.assert_array_equal, results[0], padded)


@pytest.mark.parametrize("name", ["small", "one deep set"])
def test_runs_side_by_side_are_the_runs_alone(name):
    model = MODELS[name]
    config, params = FineTuneConfig(epochs=10), init(model, 5, KEY)
    past, keys = history(11, 5, 16), jax.random.split(KEY, 3)
    tune = partial(fine_tune, model, config, params, *past)
    together = jax.jit(jax.vmap(tune))(keys)
    for i in range(3):
        alone = jax.jit(tune)(keys[i])
        jax.tree.map(lambda a, b, i=i: np.testing.assert_array_equal(a[i], b), together, alone)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    config, params, past = FineTuneConfig(epochs=20), init(SMALL, 5, KEY), history(30, 5, 30)

    def tuned(threads):
        monkeypatch.setattr(devices, "cores", lambda: threads * jax.local_device_count("cpu"))
        return jax.jit(lambda key: fine_tune(SMALL, config, params, *past, key))(KEY)

    one = tuned(1)
    for threads in (2, 3, 8):
        jax.tree.map(np.testing.assert_array_equal, tuned(threads), one)
