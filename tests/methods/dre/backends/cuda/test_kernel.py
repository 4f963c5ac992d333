"""The CUDA kernel, as a CPU emulates it, against the scan in float64."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.data import Task, build_table
from dre_jax.methods.dre import FineTuneConfig, LossConfig, MetaTrainConfig, ModelConfig, Support, init, scores
from dre_jax.methods.dre.backends.cuda.steps import take_steps
from dre_jax.methods.dre.backends.reference import scan
from dre_jax.methods.dre.fine_tuning import draw_epochs
from dre_jax.methods.dre.lists import draw_steps_bits, read_lists
from dre_jax.optim.adam import StepSizes, step_sizes, zero_moments
from tests.methods.dre.backends.cuda.emulation import emulated_limits
from tests.oracles import widen

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(native.compiler_version() is None, reason="no C++ compiler on this machine"),
]

SMALL = ModelConfig(members=3, hidden=(8, 8), phi=(8, 8), rho=(8, 4))
MODELS = {
    "papers": ModelConfig(members=2),
    "odd": ModelConfig(members=2, hidden=(5, 19, 3), phi=(7, 33), rho=(9, 1)),
    "short": ModelConfig(members=2, hidden=(6,), phi=(4,), rho=(3,)),
    "no deep set": ModelConfig(members=2, hidden=(17, 5), context="none"),
    "one deep set": replace(SMALL, context="shared"),
    "response as given": replace(SMALL, response_scale="table"),
    "wide": ModelConfig(members=1, hidden=(64, 48), phi=(64, 40), rho=(50, 16)),
    "widest": ModelConfig(members=1, hidden=(64,) * 4, phi=(64,) * 3, rho=(64, 64, 16)),
}
thorough = pytest.mark.thorough


def limits(**others):
    return emulated_limits()._replace(**others)


def history(n, columns, capacity, *, groups=None):
    """A history with ties, its empty slots full of what must not be read."""
    rng = np.random.default_rng(n)
    level = np.sort(rng.integers(0, groups or max(1, n // 2), n))
    x = np.concatenate([rng.random((n, columns)), np.full((capacity - n, columns), np.nan)]).astype(np.float32)
    response = np.pad(1.0 - level / (level.max() + 1.0), (0, capacity - n), constant_values=np.nan).astype(np.float32)
    level = np.pad(level, (0, capacity - n), constant_values=n + 1).astype(np.int32)
    return jax.tree.map(jnp.asarray, (x, response, level, np.arange(capacity) < n))


def epochs_of(config, past):
    x, response, level, where = past
    lists = jax.jit(draw_epochs, static_argnums=0)(config, response, level, where, jax.random.key(1))
    return x, response, jax.tree.map(lambda a: a[:, None, None], lists)


def sizes_of(steps, *, still):
    """Steps of no size leave in the moments sums over gradients at one place."""
    if still:
        return StepSizes(jnp.zeros(steps), jnp.ones(steps))
    return step_sizes(FineTuneConfig(learning_rate=1e-3).learning_rates(), jnp.arange(steps))


def with_start(model, columns, x, response, lists, sizes, *, scale=1.0):
    params = init(model, columns, jax.random.key(0))
    params.scorers["out_kernel"] *= scale
    return x, response, (params, zero_moments(params)), lists, sizes


def by_scan(model, arguments):
    """The scan's result in float64."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        return jax.device_get(jax.jit(partial(scan.take_steps, model, "listmle"))(*widen(arguments)))


def by_kernel(model, arguments, device=None, precision="float32", **options):
    options = {"params_only": False} | options
    return jax.jit(partial(take_steps, model, device or limits(), precision, **options))(*arguments)


def assert_same_gradients(result, expected, tolerance=2e-5):
    """The last bias has the sum over a list, which is nothing but rounding."""
    ((_, moments), losses), ((_, expected_moments), expected_losses) = result, expected
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-6, atol=1e-7)

    def compare(path, a, b):
        if path[-1].key != "out_bias":
            np.testing.assert_allclose(a, b, atol=tolerance * np.abs(b).max(), err_msg=str(path))

    jax.tree_util.tree_map_with_path(compare, moments.first, expected_moments.first)
    jax.tree_util.tree_map_with_path(compare, moments.second, expected_moments.second)


@pytest.mark.parametrize(
    ("name", "n", "columns", "capacity", "device"),
    [
        pytest.param("papers", 53, 16, 60, {}, marks=thorough),  # 8 warps
        pytest.param("papers", 105, 6, 105, {"multiprocessors": 1}, marks=thorough),  # 4 warps, two tiles each
        pytest.param("papers", 30, 17, 32, {"multiprocessors": 1}, marks=thorough),
        pytest.param("papers", 105, 16, 105, {"shared_bytes": 101_376}, marks=thorough),  # activations in L2
        pytest.param("papers", 500, 8, 512, {"multiprocessors": 1}, marks=thorough),  # several passes
        ("odd", 40, 3, 48, {"multiprocessors": 1}),
        pytest.param("short", 20, 64, 24, {}, marks=thorough),
        ("no deep set", 300, 5, 304, {"multiprocessors": 1, "shared_bytes": 50_000}),  # passes, activations in L2
        ("one deep set", 30, 6, 32, {}),
        pytest.param("response as given", 12, 16, 16, {}, marks=thorough),
        pytest.param("wide", 60, 40, 64, {}, marks=thorough),
        pytest.param("widest", 60, 64, 64, {}, marks=thorough),
    ],
)
@pytest.mark.slow
def test_gradients_and_losses_are_those_of_the_scan(name, n, columns, capacity, device):
    model, config = MODELS[name], FineTuneConfig(epochs=2, loss=LossConfig(weights="inverse_log"))
    arguments = with_start(model, columns, *epochs_of(config, history(n, columns, capacity)), sizes_of(2, still=True))
    result = by_kernel(model, arguments, limits(**device))
    assert_same_gradients(result, by_scan(model, arguments))
    chex.assert_trees_all_equal(result[0][0], arguments[2][0])  # steps of no size


def centred_scores(model, params, x):
    """Scores up to a constant: the loss does not see one, so that what adds one moves by rounding alone."""
    support = Support(x[:4], jnp.linspace(0.0, 1.0, 4), jnp.ones(4, bool))
    result = np.asarray(jax.jit(scores, static_argnums=0)(model, params, support, x), np.float64)
    return result - result.mean(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("own", "n_lists", "multiprocessors"),
    [pytest.param(True, 2, 1, marks=thorough), (True, 5, 6), pytest.param(False, 2, 132, marks=thorough)],
    ids=["one block a member", "two blocks share five lists", "two blocks, shared lists"],
)
@pytest.mark.slow
def test_meta_training_is_that_of_the_scan(own, n_lists, multiprocessors):
    """Several lists a step, tasks of several sizes, and moments that go on from portion to portion."""
    rng, columns, steps = np.random.default_rng(0), 5, 6
    tasks = {f"{n}": Task(f"{n}", rng.random((n, columns), np.float32), rng.integers(0, n, n) / n) for n in (6, 30, 90)}
    config = MetaTrainConfig(lists_per_step=n_lists, own_lists=own, n_support=5, n_query=20)
    model, data, device = SMALL, build_table(tasks), limits(multiprocessors=multiprocessors)

    @jax.jit
    def draw(key):
        return read_lists(data, draw_steps_bits(key, jnp.arange(steps), model.members, config), config)

    arguments = with_start(model, columns, data.x, data.response, draw(jax.random.key(2)), sizes_of(steps, still=True))
    assert_same_gradients(by_kernel(model, arguments, device), by_scan(model, arguments))
    x, response, start, lists, _ = arguments
    moving = sizes_of(steps, still=False)
    result, losses = by_kernel(model, (x, response, start, lists, moving), device)
    (expected, _), expected_losses = by_scan(model, (x, response, start, lists, moving))
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-3)
    before, after, goal = (centred_scores(model, params, x[:20]) for params in (start[0], result[0], expected))
    assert np.abs(goal - before).max() > 1e-3
    assert np.abs(after - goal).max() < 1e-2 * np.abs(goal - before).max()
    carry = start
    for part in (slice(0, 2), slice(2, 6)):
        carry, _ = by_kernel(
            model, (x, response, carry, *jax.tree.map(lambda a, part=part: a[part], (lists, moving))), device
        )
    chex.assert_trees_all_equal(carry, result)


@pytest.mark.parametrize("weights", ["inverse_linear", pytest.param("attention", marks=thorough)])
@pytest.mark.slow
def test_scores_of_any_range_have_exact_gradients(weights):
    """With one shift for all sums, those that are far behind would underflow."""
    config = FineTuneConfig(epochs=2, loss=LossConfig(weights=weights))
    past = history(40, 3, 48)
    arguments = with_start(MODELS["odd"], 3, *epochs_of(config, past), sizes_of(2, still=True), scale=1e4)
    result, expected = by_kernel(MODELS["odd"], arguments, limits(multiprocessors=1)), by_scan(MODELS["odd"], arguments)
    assert expected[1].max() > 1e3
    assert_same_gradients(result, expected, tolerance=1e-3)  # of a score in the thousands float32 keeps four decimals


@pytest.mark.parametrize(("n", "groups"), [(1, None), (2, None), (16, 1)], ids=["one", "two", "full, all tied"])
def test_short_full_and_tied_histories(n, groups):
    model, config = MODELS["odd"], FineTuneConfig(epochs=2)
    arguments = with_start(model, 3, *epochs_of(config, history(n, 3, 16, groups=groups)), sizes_of(2, still=True))
    assert_same_gradients(by_kernel(model, arguments), by_scan(model, arguments))


@pytest.mark.slow
def test_runs_of_a_batch_are_the_runs_alone():
    """Runs with histories of their own, from shared parameters; two axes of a batch are one launch."""
    model, config = SMALL, FineTuneConfig(epochs=3)
    pasts = [[history(n, 3, 16, groups=g) for n in (9, 16)] for g in (3, 5)]
    cases = [[epochs_of(config, past) for past in row] for row in pasts]
    start, sizes = with_start(model, 3, *cases[0][0], sizes_of(3, still=False))[2::2]

    def fit(x, response, lists):
        return take_steps(model, limits(), "float32", x, response, start, lists, sizes, params_only=True)[0][0]

    stacked = jax.tree.map(lambda *a: jnp.stack(a), *(jax.tree.map(lambda *a: jnp.stack(a), *row) for row in cases))
    batch = jax.jit(jax.vmap(jax.vmap(fit)))
    result = batch(*stacked)
    alone = jax.jit(fit)
    for i, row in enumerate(cases):
        for j, case in enumerate(row):
            chex.assert_trees_all_equal(jax.tree.map(lambda a, i=i, j=j: a[i, j], result), alone(*case))
    text = batch.lower(*stacked).as_text()
    assert text.count("stablehlo.custom_call @dre_jax_cuda_steps") == 1


@pytest.mark.slow
def test_columns_of_zeros_change_nothing():
    from dre_jax.methods.dre import pad_ensemble

    model, config = SMALL, FineTuneConfig(epochs=3)
    x, response, lists = epochs_of(config, history(16, 3, 16))
    arguments = with_start(model, 3, x, response, lists, sizes_of(3, still=False))
    params = pad_ensemble(arguments[2][0], 3, 8)
    padded = jnp.pad(x, ((0, 0), (0, 5))), response, (params, zero_moments(params)), *arguments[3:]
    result, expected = (by_kernel(model, a, params_only=True)[0][0] for a in (padded, arguments))
    chex.assert_trees_all_close(result, pad_ensemble(expected, 3, 8), atol=1e-6)


def test_products_of_tf32_are_less_exact():
    model, config = MODELS["odd"], FineTuneConfig(epochs=2)
    arguments = with_start(model, 3, *epochs_of(config, history(40, 3, 48)), sizes_of(2, still=True))
    (_, moments), _ = by_kernel(model, arguments, precision="tf32")
    (_, expected), _ = by_scan(model, arguments)
    error = np.abs(moments.first.scorers["out_kernel"] - expected.first.scorers["out_kernel"]).max()
    assert 1e-5 < error / np.abs(expected.first.scorers["out_kernel"]).max() < 1e-2
