"""Members side by side in the lanes of a TPU: the kernel, as JAX runs it without one, against the scan over epochs."""

from dataclasses import fields
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.losses import rank_sorted
from dre_jax.methods.dre import FineTuneConfig, LossConfig, ModelConfig, Support, init, scores
from dre_jax.methods.dre.fine_tuning import draw_epochs, epochs_in_lanes, fine_tune, fit_epochs
from dre_jax.methods.dre.steps import scan_steps
from dre_jax.methods.dre.tpu import layout_of, masks_of, supports_kernel
from dre_jax.methods.dre.tpu.kernel import max_groups_per_pass
from dre_jax.optim.adam import step_sizes
from dre_jax.search import make_history, sort_history
from tests.oracles import widen

CONFIG = FineTuneConfig(epochs=7, learning_rate=0.01)
COLUMNS, FILLED, CAPACITY = 3, 11, 13
MODELS = {
    "one layer before the mean": ModelConfig(members=3, hidden=(8, 8), phi=(8,), rho=(8, 4)),
    "several groups, odd widths": ModelConfig(members=5, hidden=(32, 24), phi=(32, 16), rho=(12,)),
    "no deep set": ModelConfig(members=2, hidden=(64,), context="none"),
    "response on the table's scale": ModelConfig(members=1, hidden=(8,), phi=(8, 8), rho=(4,), response_scale="table"),
}


def history(n=FILLED):
    """Trials with ties, best first, and empty slots."""
    rng = np.random.default_rng(0)
    return sort_history(make_history(rng.random((n, COLUMNS)), np.round(rng.normal(size=n)), CAPACITY))


def inputs(model, n=FILLED):
    """What both formulations take, in float64: Adam makes whole steps of what is nothing but rounding."""
    h, params = history(n), init(model, COLUMNS, jax.random.key(1))
    steps = jax.jit(step_sizes, static_argnums=0)(CONFIG.learning_rates(), jnp.arange(CONFIG.epochs))
    return h, params, drawn(h), steps


@jax.jit
def drawn(h):
    return draw_epochs(CONFIG, h.response, h.level, h.where, jax.random.key(3))


def tuned(way, model, h, params, epochs, steps):
    """Parameters and scores of two runs side by side."""

    def one(x):
        result = way(params, x, h.response, epochs, steps)
        return result, scores(model, result, Support(x, h.response, h.where), x)[:, :FILLED]

    return jax.jit(jax.vmap(one))(jnp.stack([h.x, h.x[:, ::-1]]))


SECOND = ("one layer before the mean", "no deep set", "response on the table's scale")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in SECOND else []) for name in MODELS]
)
def test_the_kernel_equals_the_scan(name):
    model = MODELS[name]
    arguments = inputs(model)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        h, params, epochs, steps = widen(arguments)
        lanes = partial(epochs_in_lanes, model, CONFIG.loss.weights, h.level, h.where, interpret=True)
        scan = partial(fit_epochs, partial(scan_steps, model, "listmle"))
        expected, expected_scores = tuned(scan, model, h, params, epochs, steps)
        result, kernel_scores = tuned(lanes, model, h, params, epochs, steps)
        # The weights of the positions are float32 there too.
        chex.assert_trees_all_close(result, expected, atol=3e-6)
    np.testing.assert_array_equal(np.argsort(kernel_scores), np.argsort(expected_scores))
    moved = np.asarray(expected.scorers["hidden_0_kernel"]) - np.asarray(params.scorers["hidden_0_kernel"])
    assert np.abs(moved).max() > 0.05


def test_a_history_of_one_trial_changes_nothing():
    model = MODELS["one layer before the mean"]
    h, params, epochs, steps = inputs(model, n=1)
    way = partial(epochs_in_lanes, model, CONFIG.loss.weights, h.level, h.where, interpret=True)
    chex.assert_trees_all_equal(jax.jit(way)(params, h.x, h.response, epochs, steps), params)


@pytest.mark.parametrize("weights", ["inverse_log", "inverse_linear", "attention", "none"])
def test_weights_are_those_of_the_lists(weights):
    h = history()
    epochs = drawn(h)
    masks = jax.jit(masks_of, static_argnums=(0, 1))
    first, draws = jax.device_get(masks(ModelConfig(), weights, h.level, h.where, h.response, epochs))
    rank, (h, epochs) = jax.jit(rank_sorted, static_argnums=3), jax.device_get((h, epochs))
    for e in range(CONFIG.epochs):
        query, where = epochs.query[e], epochs.ranked_list.where[e]
        listed = rank(h.response[query], h.level[query], where, weights)
        expected = np.zeros(CAPACITY)
        expected[query[where]] = np.asarray(listed.weight)[where]
        np.testing.assert_allclose(draws.weight[e], expected, rtol=1e-5)
        assert set(np.flatnonzero(draws.share[e])) == set(epochs.support[e][epochs.support_where[e]])
    level = np.asarray(h.level)
    assert np.asarray(first).tolist() == [int(np.flatnonzero(level == one)[0]) for one in level]


def test_models_that_the_kernel_does_not_support(monkeypatch):
    x, model = jnp.zeros((20, 3)), ModelConfig()
    assert supports_kernel(model, "listmle", x)
    for other in ({"context": "shared"}, {"range_limit": 3.0}, {"hidden": (129,)}, {"rho": (129, 4)}):
        assert not supports_kernel(ModelConfig(**other), "listmle", x)
    assert not supports_kernel(model, "listnet", x)
    assert not supports_kernel(model, "listmle", jnp.zeros((513, 3)))
    assert not supports_kernel(model, "listmle", jnp.zeros((20, 3), jnp.bfloat16))
    # What the compiler for a v5e was seen to refuse: two squares of trials for each of 16 members.
    assert not supports_kernel(ModelConfig(hidden=(8,), phi=(8,), rho=(8,)), "listmle", jnp.zeros((512, 3)))
    monkeypatch.setenv("DRE_JAX_PALLAS", "0")
    assert not supports_kernel(model, "listmle", x)


def test_fewer_groups_go_together_where_the_chips_memory_is_full():
    """The compiler for a v5e takes three groups of the default model at 192 trials, and refuses three at 320."""
    layout = layout_of(ModelConfig(), 16)
    assert [max_groups_per_pass(layout, 3, trials) for trials in (16, 105, 192)] == [3, 3, 3]
    assert max_groups_per_pass(layout, 3, 320) < 3
    assert max_groups_per_pass(layout, 3, 512) < 3


def test_the_kernel_covers_every_field_of_the_model():
    """A new field cannot be ignored in silence."""
    covered = {"members", "hidden", "context", "phi", "rho", "response_scale", "range_limit"}
    elsewhere = {"range_slope", "initialiser"}  # without a limit it means nothing; weights are drawn before
    assert {field.name for field in fields(ModelConfig)} == covered | elsewhere
    assert {field.name for field in fields(LossConfig)} == {"name", "weights"}


def test_tpus_have_the_kernel():
    model, h = MODELS["no deep set"], history()
    arguments = init(model, COLUMNS, jax.random.key(0)), *h[:4], jax.random.key(0)
    lowered = jax.jit(partial(fine_tune, model, CONFIG)).trace(*arguments).lower(lowering_platforms=("tpu",))
    assert "tpu_custom_call" in lowered.as_text()
