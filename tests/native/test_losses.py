"""The compiled losses against loops in float64 over the definitions, at any range of scores."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.losses import rank_sorted

pytestmark = pytest.mark.skipif(not native.available(), reason="no C++ compiler on this machine")

SIZES = ("hidden", "phi", "rho", "loss", "wants_losses")
train_steps = jax.jit(native.train_steps, static_argnames=SIZES)
rank = jax.jit(rank_sorted, static_argnames="weights")


@partial(jax.jit, static_argnames=("name", "wants_losses"))
def step(name, score, ranked, wants_losses):
    """Adam's mean after a step of a linear scorer on the unit vectors, and the loss."""
    n = len(score)
    # relu(x) - relu(-x) = x: unit vectors through +-1 and back, times the scores.
    eye = jnp.eye(n, dtype=jnp.float32)
    arrays = [jnp.concatenate([eye, -eye], axis=1), jnp.zeros(2 * n), jnp.concatenate([score, -score]), jnp.zeros(1)]
    packed = jnp.concatenate([a.ravel() for a in arrays])[None]
    none = jnp.zeros((1, 1, 1, 1), jnp.int32)
    support = none, none > 0, none.astype(jnp.float32)
    query, ranked = jax.tree.map(lambda a: a[None, None, None], (jnp.arange(n, dtype=jnp.int32), ranked))
    scorers, no_deep_set = jnp.stack([packed, jnp.zeros_like(packed), jnp.zeros_like(packed)]), jnp.zeros((3, 1, 0))
    inputs = scorers, no_deep_set, eye, native.Lists(*support, query, *ranked), jnp.zeros(1), jnp.ones(1)
    sizes = {"hidden": (2 * n,), "phi": (), "rho": ()}
    (_, mean, _), _, loss = native.train_steps(*inputs, **sizes, loss=name, wants_losses=wants_losses)
    return mean, loss


def compiled(name, score, ranked, wants_losses=True):
    """The gradient that the compiled loss gives scores; and the loss."""
    n, (mean, loss) = len(score), jax.device_get(step(name, score, ranked, wants_losses))
    kernel = 10.0 * mean[0, 2 * n * n + 2 * n : -1]  # of the last layer: relu(x) and relu(-x) times each gradient
    return kernel[:n], float(loss[0, 0])


# Each gives the loss and its gradient, of items without empty slots: scores, responses, weights.


def listmle(s, y, w):
    loss, gradient = 0.0, -w
    for i in range(len(s)):
        behind = y <= y[i]
        log_total = np.logaddexp.reduce(s[behind])
        loss += w[i] * (log_total - s[i])
        gradient = gradient + w[i] * behind * np.exp(np.minimum(s - log_total, 0.0))
    return loss, gradient


def mean_squared_error(s, y, w):
    return np.mean(w * (s - y) ** 2), 2 * w * (s - y) / len(s)


SLOW = {f.__name__: f for f in (listmle, mean_squared_error)}


def ranked_list(rng, n=24, levels=12, weights="inverse_log"):
    """A list with ties, and empty slots anywhere but between tied items; they hold what must not be read."""
    level = np.sort(rng.integers(0, levels, n)).astype(np.int32)
    edge = np.concatenate([[True], level[1:] != level[:-1]])
    where = ~(edge & (rng.random(n) < 0.3)) if levels > 1 else np.ones(n, bool)
    response = np.where(where, 1.0 - level / levels, 7.0).astype(np.float32)
    return rank(jnp.asarray(response), jnp.asarray(level), jnp.asarray(where), weights=weights)


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0, 500.0, 1e4])
@pytest.mark.parametrize("name", SLOW)
def test_values_and_gradients_are_exact_at_any_range(name, spread):
    for seed, weights in enumerate(("inverse_linear", "none", "inverse_log", "inverse_log")):
        rng = np.random.default_rng(seed)
        ranked = ranked_list(rng, levels=1 if seed == 3 else 12, weights=weights)  # the last list is one tie
        score = (spread * rng.uniform(-1, 1, 24)).astype(np.float32)
        result, result_loss = compiled(name, jnp.asarray(score), ranked)
        items = np.asarray(ranked.where)
        inputs = (np.asarray(a, np.float64)[items] for a in (score, ranked.response, ranked.weight))
        loss, gradient = SLOW[name](*inputs)
        expected = np.zeros(24)
        expected[items] = gradient
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=4e-6)
        np.testing.assert_allclose(result_loss, loss, rtol=2e-6)
    np.testing.assert_array_equal(compiled(name, jnp.asarray(score), ranked, wants_losses=False)[0], result)


@pytest.mark.parametrize("name", SLOW)
def test_an_empty_list_has_no_loss_and_nan_spreads(name):
    ranked = rank(jnp.full(3, jnp.nan), jnp.zeros(3, jnp.int32), jnp.zeros(3, bool))
    gradient, loss = compiled(name, jnp.arange(3.0), ranked)
    assert (loss, gradient.any()) == (0.0, False)
    ranked = rank(jnp.arange(3.0)[::-1], jnp.arange(3), jnp.ones(3, bool))
    for bad in (jnp.nan, jnp.inf):
        gradient, loss = compiled(name, jnp.array([0.0, bad, 1.0]), ranked)
        assert np.isnan(loss)
        assert np.isnan(gradient).any()


# What is given wrong is refused, in place of a crash.


def call(width=17, deep_sets=0, lists=1, loss="listmle", **rows):
    """Three members, with a deep set where the width of their scorers is 25; 3 rows of 2 columns, lists of 2 slots."""
    members, with_deep_set = 3, width == 25
    row, filled = jnp.zeros((1, lists, 1, 2), jnp.int32), jnp.zeros((1, lists, 1, 2))
    empty = native.Lists(row, row > 0, filled, row, filled, row > 0, filled, row, row)
    empty = empty._replace(**{name: row + number for name, number in rows.items()})
    size = 26 if with_deep_set else deep_sets  # (3 + 1) * 3 before the mean, (3 + 1) * 2 and (2 + 1) * 2 behind it
    sets, x = jnp.zeros((3, max(deep_sets, 1), size)), jnp.zeros((3, 2))
    sizes = {"hidden": (4,), "phi": (3,) if with_deep_set else (), "rho": (2, 2) if with_deep_set else ()}
    inputs = jnp.zeros((3, members, width)), sets, x, empty, jnp.ones(1), jnp.ones(1)
    return train_steps(*inputs, **sizes, loss=loss, wants_losses=False)[0].block_until_ready()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"width": 5}, "do not have the sizes of the layers"),
        ({"deep_sets": 1}, "do not have the sizes of the layers"),
        ({"loss": "hinge"}, "no loss of that name"),
        ({"width": 25, "deep_sets": 2}, "a deep set for each member, or one for all"),
        ({"width": 25, "deep_sets": 1, "lists": 3}, "that share a deep set must share lists"),
        ({"support": 3}, "row numbers .* from 0 to the table's last row"),
        ({"query": -1}, "row numbers .* from 0 to the table's last row"),
        ({"first": 2}, "bounds of tie groups must be slots"),
        ({"last": -(2**31)}, "bounds of tie groups must be slots"),
    ],
)
def test_inconsistent_arguments_are_refused(arguments, said):
    with pytest.raises(Exception, match=said):
        call(**arguments)


def test_the_last_row_and_slot_fit():
    call(support=2, query=2, first=1, last=1)
