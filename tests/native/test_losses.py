"""The compiled losses against loops in float64 over the definitions, at any range of scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.losses import RANKED_LOSSES, RankedList, rank_sorted

pytestmark = pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")

SIZES = ("hidden", "phi", "rho", "range_limit", "range_slope", "loss", "wants_losses")
FREE = {"range_limit": 0.0, "range_slope": 0.0}
train_steps = jax.jit(native.train_steps, static_argnames=SIZES)
rank = jax.jit(rank_sorted, static_argnames=("weights", "ties"))


def compiled(name, score, ranked, wants_losses=True):
    """The gradient that the compiled loss gives scores, that of a linear scorer on the unit vectors; and the loss."""
    n = len(score)
    # relu(x) - relu(-x) = x: unit vectors through +-1 and back, times the scores.
    eye = jnp.eye(n, dtype=jnp.float32)
    arrays = [jnp.concatenate([eye, -eye], axis=1), jnp.zeros(2 * n), jnp.concatenate([score, -score]), jnp.zeros(1)]
    packed = jnp.concatenate([a.ravel() for a in arrays])[None]
    none = jnp.zeros((1, 1, 1, 1), jnp.int32)
    support = none, none > 0, none.astype(jnp.float32)
    query, ranked = jax.tree.map(lambda a: a[None, None, None], (jnp.arange(n, dtype=jnp.int32), ranked))
    scorers, no_deep_set = jnp.stack([packed, jnp.zeros_like(packed), jnp.zeros_like(packed)]), jnp.zeros((3, 1, 0))
    (_, mean, _), _, loss = train_steps(
        scorers,
        no_deep_set,
        eye,
        native.Lists(*support, query, *ranked),
        jnp.zeros(1),
        jnp.ones(1),
        hidden=(2 * n,),
        phi=(),
        rho=(),
        loss=name,
        wants_losses=wants_losses,
        **FREE,
    )
    kernel = 10.0 * mean[0, 2 * n * n + 2 * n : -1]  # of the last layer: relu(x) and relu(-x) times each gradient
    return np.asarray(kernel[:n]), float(loss[0, 0])


# Each gives the loss and its gradient, of items without empty slots: scores, responses, weights.


def listmle(s, y, w):
    loss, gradient = 0.0, -w
    for i in range(len(s)):
        behind = y <= y[i]
        log_total = np.logaddexp.reduce(s[behind])
        loss += w[i] * (log_total - s[i])
        gradient = gradient + w[i] * behind * np.exp(np.minimum(s - log_total, 0.0))
    return loss, gradient


def listnet(s, y, w):
    target, log_total = np.exp(y) / np.exp(y).sum(), np.logaddexp.reduce(s)
    return np.sum(w * target * (log_total - s)), np.sum(w * target) * np.exp(s - log_total) - w * target


def ranknet(s, y, w):
    loss, gradient = 0.0, np.zeros(len(s))
    for i, j in zip(*np.nonzero(y[:, None] > y[None, :]), strict=True):
        term = np.logaddexp(0.0, s[j] - s[i])
        lost = np.exp(s[j] - s[i] - term)
        loss += w[i] * term
        gradient[j] += w[i] * lost
        gradient[i] -= w[i] * lost
    return loss, gradient


def subset_regression(s, y, w):
    rank = np.array([np.sum(y > mine) + (np.sum(y == mine) + 1) / 2 for mine in y])
    error = len(s) * s - (len(s) + 1 - rank)
    return np.sum(w * error**2) / len(s), 2 * w * error


def mean_squared_error(s, y, w):
    return np.mean(w * (s - y) ** 2), 2 * w * (s - y) / len(s)


SLOW = {f.__name__: f for f in (listmle, listnet, ranknet, subset_regression, mean_squared_error)}


def ranked_list(rng, n=24, levels=12, weights="inverse_log"):
    """A list with ties, and empty slots anywhere but between tied items; they hold what must not be read."""
    level = np.sort(rng.integers(0, levels, n)).astype(np.int32)
    edge = np.concatenate([[True], level[1:] != level[:-1]])
    where = ~(edge & (rng.random(n) < 0.3)) if levels > 1 else np.ones(n, bool)
    response = np.where(where, 1.0 - level / levels, 7.0).astype(np.float32)
    return rank(jnp.asarray(response), jnp.asarray(level), jnp.asarray(where), weights=weights)


def test_every_loss_is_there():
    assert set(SLOW) == set(RANKED_LOSSES)


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0, 500.0, 1e4])
@pytest.mark.parametrize("name", SLOW)
def test_values_and_gradients_are_exact_at_any_range(name, spread):
    for seed, weights in enumerate(("inverse_linear", "none", "inverse_log")):
        rng = np.random.default_rng(seed)
        ranked = ranked_list(rng, weights=weights)
        score = (spread * rng.uniform(-1, 1, 24)).astype(np.float32)
        found, found_loss = compiled(name, jnp.asarray(score), ranked)
        items = np.asarray(ranked.where)
        inputs = (np.asarray(a, np.float64)[items] for a in (score, ranked.response, ranked.weight))
        loss, gradient = SLOW[name](*inputs)
        expected = np.zeros(24)
        expected[items] = gradient
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(found_loss, loss, rtol=2e-6)
        in_jax = RANKED_LOSSES[name](jnp.asarray(score), ranked)
        np.testing.assert_allclose(found_loss, float(in_jax), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("spread", [1.0, 1e4])
@pytest.mark.parametrize("name", SLOW)
def test_the_gradient_does_not_depend_on_whether_the_loss_is_wanted(name, spread):
    rng = np.random.default_rng(5)
    ranked, score = ranked_list(rng), jnp.asarray((spread * rng.uniform(-1, 1, 24)).astype(np.float32))
    np.testing.assert_array_equal(compiled(name, score, ranked)[0], compiled(name, score, ranked, False)[0])


@pytest.mark.parametrize("name", SLOW)
def test_all_items_tied(name):
    rng = np.random.default_rng(6)
    ranked, score = ranked_list(rng, levels=1), rng.normal(0.0, 2.0, 24).astype(np.float32)
    gradient, loss = compiled(name, jnp.asarray(score), ranked)
    inputs = (np.asarray(a, np.float64) for a in (score, ranked.response, ranked.weight))
    expected_loss, expected = SLOW[name](*inputs)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)


@pytest.mark.parametrize("name", SLOW)
def test_an_empty_list_has_no_loss(name):
    nothing = jnp.zeros(4, bool)
    ranked = rank(jnp.full(4, jnp.nan), jnp.zeros(4, jnp.int32), nothing)
    gradient, loss = compiled(name, jnp.arange(4.0), RankedList(*ranked))
    assert loss == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("name", SLOW)
def test_scores_that_are_no_numbers_give_losses_that_are_none(name):
    ranked = rank(jnp.arange(3.0)[::-1], jnp.arange(3), jnp.ones(3, bool))
    for bad in (jnp.nan, jnp.inf):
        gradient, loss = compiled(name, jnp.array([0.0, bad, 1.0]), ranked)
        assert np.isnan(loss)
        assert np.isnan(gradient).any()


# What is given wrong is refused, in place of a crash.


@pytest.mark.parametrize(
    ("width", "deep_sets", "lists", "loss", "said"),
    [
        (5, 0, 1, "listmle", "do not have the sizes of the layers"),
        (17, 1, 1, "listmle", "do not have the sizes of the layers"),
        (17, 0, 1, "hinge", "no loss of that name"),
        (25, 2, 1, "listmle", "a deep set for each member, or one for all"),
        (25, 1, 3, "listmle", "that share a deep set must share lists"),
    ],
)
def test_what_does_not_fit_is_refused(width, deep_sets, lists, loss, said):
    members, ones = 3, jnp.ones(1)
    with_deep_set = width == 25
    none, filled = jnp.zeros((1, lists, 1, 2), jnp.int32), jnp.zeros((1, lists, 1, 2))
    empty = native.Lists(none, none > 0, filled, none, filled, none > 0, filled, none, none)
    size = 26 if with_deep_set else deep_sets  # (3 + 1) * 3 before the mean, (3 + 1) * 2 and (2 + 1) * 2 behind it
    with pytest.raises(Exception, match=said):
        train_steps(
            jnp.zeros((3, members, width)),
            jnp.zeros((3, max(deep_sets, 1), size)),
            jnp.zeros((3, 2)),
            empty,
            ones,
            ones,
            hidden=(4,),
            phi=(3,) if with_deep_set else (),
            rho=(2, 2) if with_deep_set else (),
            loss=loss,
            wants_losses=False,
            **FREE,
        )[0].block_until_ready()
