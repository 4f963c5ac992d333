"""Members side by side in the lanes of a TPU: the kernel, as JAX runs it without one, against the scan over epochs."""

from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.methods.dre import FineTuneConfig, LossConfig, ModelConfig, Support, init, scores
from dre_jax.methods.dre.backends import scan, tpu
from dre_jax.methods.dre.backends.tpu.kernel import masks_of, max_groups_per_pass
from dre_jax.methods.dre.backends.tpu.layout import layout_of
from dre_jax.methods.dre.fine_tuning import draw_epochs, fine_tune, request_for
from dre_jax.optim.adam import step_sizes, zero_moments
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
        start = params, zero_moments(params)
        result = way(x, h.response, start, jax.tree.map(lambda a: a[:, None, None], epochs), steps)[0][0]
        return result, scores(model, result, Support(x, h.response, h.where), x)[:, :FILLED]

    return jax.jit(jax.vmap(one))(jnp.stack([h.x, h.x[:, ::-1]]))


SECOND = ("one layer before the mean", "no deep set", "response on the table's scale")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in SECOND else []) for name in MODELS]
)
@pytest.mark.slow
def test_the_kernel_equals_the_scan(name):
    model = MODELS[name]
    arguments = inputs(model)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        h, params, epochs, steps = widen(arguments)
        ways = partial(scan.take_steps, model, "listmle"), partial(tpu.take_steps, model, interpret=True)
        (expected, expected_scores), (result, kernel_scores) = (
            tuned(way, model, h, params, epochs, steps) for way in ways
        )
        # The weights of the positions are float32 there too.
        chex.assert_trees_all_close(result, expected, atol=3e-6)
    np.testing.assert_array_equal(np.argsort(kernel_scores), np.argsort(expected_scores))
    moved = np.asarray(expected.scorers["hidden_0_kernel"]) - np.asarray(params.scorers["hidden_0_kernel"])
    assert np.abs(moved).max() > 0.05


def test_a_history_of_one_trial_changes_nothing():
    model = MODELS["one layer before the mean"]
    h, params, epochs, steps = inputs(model, n=1)
    chex.assert_trees_all_equal(
        tuned(partial(tpu.take_steps, model, interpret=True), model, h, params, epochs, steps)[0],
        jax.tree.map(lambda a: jnp.stack([a, a]), params),
    )


@pytest.mark.parametrize("weights", ["inverse_log", "attention"])
def test_masks_are_the_lists(weights):
    h, config = history(), replace(CONFIG, loss=LossConfig(weights=weights))
    epochs = jax.jit(draw_epochs, static_argnums=0)(config, h.response, h.level, h.where, jax.random.key(3))
    first, draws = jax.device_get(jax.jit(masks_of, static_argnums=0)(ModelConfig(), h.response, epochs))
    h, epochs = jax.device_get((h, epochs))
    for e in range(CONFIG.epochs):
        where = epochs.ranked_list.where[e]
        query, expected = epochs.query[e][where], np.zeros(CAPACITY)
        expected[query] = epochs.ranked_list.weight[e][where]
        np.testing.assert_array_equal(draws.weight[e], expected.astype(np.float32))
        assert set(np.flatnonzero(draws.share[e])) == set(epochs.support[e][epochs.support_where[e]])
        # In the denominator of an item are those that are not better.
        np.testing.assert_array_equal(query >= first[query][:, None], h.level[query] >= h.level[query][:, None])


def test_models_that_the_kernel_does_not_support(monkeypatch):
    def why_not(trials=20, columns=3, loss="listmle", request=None, **model):
        config = replace(CONFIG, loss=LossConfig(name=loss))
        return tpu.why_not(request_for(ModelConfig(**model), config, columns, trials)._replace(**(request or {})))

    assert why_not() is None
    for model in ({"context": "shared"}, {"range_limit": 3.0}, {"hidden": (129,)}, {"rho": (129, 4)}):
        assert why_not(**model)
    assert why_not(loss="listnet") == "the loss listnet is not supported"
    assert why_not(trials=513) == "the history is longer than 512"
    assert why_not(request={"dtype": jnp.bfloat16}) == "numbers are not float32"
    assert why_not(request={"params_only": False}) == "it is for fine-tuning"
    # What the compiler for a v5e was seen to refuse: two squares of trials for each of 16 members.
    assert why_not(hidden=(8,), phi=(8,), rho=(8,), trials=512)
    monkeypatch.setenv("DRE_JAX_PALLAS", "0")
    assert why_not() == "DRE_JAX_PALLAS=0"


def test_fewer_groups_go_together_where_the_chips_memory_is_full():
    """The compiler for a v5e takes three groups of the default model at 192 trials, and refuses three at 320."""
    layout = layout_of(ModelConfig(), 16)
    assert [max_groups_per_pass(layout, 3, trials) for trials in (16, 105, 192)] == [3, 3, 3]
    assert max_groups_per_pass(layout, 3, 320) < 3
    assert max_groups_per_pass(layout, 3, 512) < 3


def test_tpus_have_the_kernel():
    model, h = MODELS["no deep set"], history()
    arguments = init(model, COLUMNS, jax.random.key(0)), *h[:4], jax.random.key(0)
    lowered = jax.jit(partial(fine_tune, model, CONFIG)).trace(*arguments).lower(lowering_platforms=("tpu",))
    assert "tpu_custom_call" in lowered.as_text()
