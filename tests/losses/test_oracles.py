"""Every loss against a slow loop in float64, written from the definitions: values, and gradients by differences.

The loop is given the items that count, list by list: masking is dropping, in any batch, and in any order.
"""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rax

from dre_jax import losses
from dre_jax.losses.functions import rank

WEIGHTS = {  # of position j of k, by the names that the losses know
    "none": lambda j, k: 1.0,
    "inverse_log": lambda j, k: 1.0 / math.log(j + 1),
    "inverse_linear": lambda j, k: 1.0 / j,
    "attention": lambda j, k: (k - j + 1) / sum(range(1, k + 1)),
}


def tie_groups(response):
    """Lists of items with equal responses, best group first."""
    return [[i for i, r in enumerate(response) if r == level] for level in sorted(set(response), reverse=True)]


def item_weights(response, kind):
    """Weight of each item: that of its position, or the mean over the positions that its tie group takes."""
    weights, position, k = np.zeros(len(response)), 1, len(response)
    for group in tie_groups(response):
        group_weights = [WEIGHTS[kind](position + i, k) for i in range(len(group))]
        weights[group] = sum(group_weights) / len(group_weights)
        position += len(group)
    return weights


def slow_listmle(scores, response, kind):
    weights, groups, total = item_weights(response, kind), tie_groups(response), 0.0
    for g, group in enumerate(groups):
        behind = [i for later in groups[g:] for i in later]
        denominator = np.logaddexp.reduce(scores[behind])
        total += sum(weights[i] * (denominator - scores[i]) for i in group)
    return total


def slow_listnet(scores, response, kind):
    target = np.exp(response) / sum(np.exp(response))
    weights, log_total = item_weights(response, kind), np.logaddexp.reduce(scores)
    return -sum(w * t * (s - log_total) for w, t, s in zip(weights, target, scores, strict=True))


def slow_ranknet(scores, response, kind):
    weights, n = item_weights(response, kind), len(scores)
    pairs = [(i, j) for i in range(n) for j in range(n) if response[i] > response[j]]
    return sum(weights[i] * np.logaddexp(0.0, scores[j] - scores[i]) for i, j in pairs)


def slow_subset_regression(scores, response, kind):
    n, weights = len(scores), item_weights(response, kind)
    rank = [sum(r > mine for r in response) + (sum(r == mine for r in response) + 1) / 2 for mine in response]
    return sum(weights[i] * (n * scores[i] - (n + 1 - rank[i])) ** 2 for i in range(n)) / n


def slow_squared_error(scores, response, kind):
    return float(np.mean(item_weights(response, kind) * (scores - response) ** 2))


ORACLES = {
    "listmle": slow_listmle,
    "listnet": slow_listnet,
    "ranknet": slow_ranknet,
    "subset_regression": slow_subset_regression,
    "mean_squared_error": slow_squared_error,
}


def loss_of(name):
    """The function of scores, responses and a mask: the public one where the registry's loss has one."""
    return getattr(losses, name, None) or partial(unsorted, losses.LOSSES[name].fn)


def unsorted(fn, scores, response, **options):
    return fn(*rank(scores, response, **options))


def oracle_of(name):
    if name not in ORACLES:
        pytest.fail(f"loss {name!r} of dre_jax.losses.LOSSES needs an oracle: add a slow one to ORACLES of this file")
    return ORACLES[name]


every_loss = pytest.mark.parametrize("name", losses.LOSSES)


@cache
def compiled(name, weights):
    """Values of all lists, and the gradient of their sum (lists do not touch each other)."""
    loss = partial(loss_of(name), weights=weights)

    def total(scores, response, where):
        values = loss(scores, response, where=where)
        return jnp.sum(values), values

    return jax.jit(jax.value_and_grad(total, has_aux=True))


def slow_gradient(f, scores):
    """Central differences of a function of one list."""
    steps = np.eye(len(scores)) * 1e-5
    return np.array([(f(scores + step) - f(scores - step)) / 2e-5 for step in steps])


def check(name, weights, scores, response, where, near=2e-5):
    """Compares all lists; ``near`` is what a gradient may be off, as a share of the largest if that is above one."""
    oracle = oracle_of(name)
    (_, values), gradient = compiled(name, weights)(*map(jnp.asarray, (scores, response, where)))
    assert values.shape == scores.shape[:-1]
    assert values.dtype == gradient.dtype == jnp.float32
    for i in np.ndindex(scores.shape[:-1]):
        items = where[i]
        s, r = scores[i][items].astype(np.float64), response[i][items].astype(np.float64)
        slow = partial(oracle, response=r, kind=weights) if items.any() else lambda s: 0.0
        np.testing.assert_allclose(values[i], slow(s), rtol=2e-5, atol=1e-5 * items.any())
        expected = slow_gradient(slow, s)
        largest = max(1.0, *np.abs(expected)) if items.any() else 1.0
        np.testing.assert_allclose(gradient[i][items], expected, rtol=2e-5, atol=near * largest)
        np.testing.assert_array_equal(gradient[i][~items], 0.0)
    return gradient


SHAPE = (2, 3, 6)


def draw(seed, shape=SHAPE, ties=True):
    """Scores, responses and a mask; the first list is full, the last empty if there are several."""
    rng = np.random.default_rng(seed)
    response = rng.random(shape)
    response = np.round(response * 3) / 4 if ties else response
    where = rng.random(shape) < 0.8
    where.reshape(-1, shape[-1])[-1] = False
    where.reshape(-1, shape[-1])[0] = True
    return rng.normal(0.0, 2.0, shape).astype(np.float32), response.astype(np.float32), where


ALL = [(name, weights) for name in losses.LOSSES for weights in WEIGHTS]


@pytest.mark.parametrize(
    ("name", "weights"),
    [pytest.param(*one, marks=[] if "listmle" in one or "inverse_log" in one else pytest.mark.thorough) for one in ALL],
)
def test_values_and_gradients(name, weights):
    for seed, ties in enumerate((False, True, True)):
        scores, response, where = draw(seed, ties=ties)
        check(name, weights, scores, response, where)
    check(name, weights, scores, np.full_like(scores, 0.5), where)


@pytest.mark.parametrize(
    "shape", [(2, 1, 3, 2), *(pytest.param(s, marks=pytest.mark.thorough) for s in ((9,), (3, 1)))]
)
@every_loss
def test_any_shape(name, shape):
    check(name, "inverse_log", *draw(1, shape))


@pytest.mark.parametrize("empty", [[3, 4, 5], [0, 1, 2], [0, 2, 5]], ids=["behind", "ahead", "between"])
@every_loss
def test_empty_slots_change_nothing(name, empty):
    scores, response, where = draw(2)
    where[..., empty] = False
    for garbage in (0.5, -1e30, np.nan):
        check(name, "inverse_log", *(np.where(where, a, np.float32(garbage)) for a in (scores, response)), where)


@every_loss
def test_far_scores_in_the_wrong_order_are_pulled_back(name):
    # The tail stands far behind the leader: an epsilon beside the sums would take its gradient.
    tail = [-90.0, 4.0, 1.0, 2.0, 3.0, 100.0]
    lists = [np.linspace(-limit, limit, 6) for limit in (100.0, 1e3, 1e4)] + [np.repeat([-1e4, 1e4], [2, 4])]
    scores = np.stack([*lists, tail, tail[::-1]]).astype(np.float32).reshape(SHAPE)
    response = np.broadcast_to(np.linspace(1.0, 0.0, 6, dtype=np.float32), SHAPE)
    # A unit in the last place of these scores is 1e-3, and gradients hold their exponentials.
    gradient = check(name, "inverse_log", scores, response, np.ones(SHAPE, bool), near=5e-3).reshape(6, 6)
    assert (gradient[:4, 0] < -0.04).all()
    assert (gradient[:4, -1] > 0.04).all()


@every_loss
def test_compiled_vmapped_and_eager_losses_are_equal(name):
    arrays = [jnp.asarray(a) for a in draw(3)]
    (_, expected), _ = compiled(name, "none")(*arrays)

    def loss(scores, response, where):
        return loss_of(name)(scores, response, where=where)

    np.testing.assert_allclose(loss(*arrays), expected, rtol=2e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(loss))(*arrays), expected, rtol=2e-6)


@pytest.mark.parametrize("name", ["listmle", "ranknet", "subset_regression"])
def test_responses_that_float32_has_merged_are_still_in_order(name):
    scores, level = jnp.array([0.3, -0.2, 0.9]), jnp.arange(3)
    rank = jax.jit(losses.rank_sorted)
    apart = rank(jnp.array([1.0, 0.5, 0.0]), level, jnp.ones(3, bool))
    merged = rank(jnp.array([1.0, 1.0, 0.0]), level, jnp.ones(3, bool))
    loss = jax.jit(losses.LOSSES[name].fn)
    assert float(loss(scores, apart)) == float(loss(scores, merged))


# The losses whose definitions meet rax's (Jagerman et al. 2022).


def rax_listmle(scores, response, where):
    return rax.listmle_loss(scores, response, where=where, reduce_fn=None)


def rax_softmax(scores, response, where):
    def softmaxed(labels, where):
        return jax.nn.softmax(labels, axis=-1, where=where)

    return rax.softmax_loss(scores, response, where=where, label_fn=softmaxed, reduce_fn=None)


def rax_pairs(scores, response, where):
    one = jax.vmap(lambda s, r, w: rax.pairwise_logistic_loss(s, r, where=w, reduce_fn=jnp.sum))
    return one(scores, response, where)


# Ties make no pair in either; the others' rules for them differ.
PAIRS = [
    (losses.listmle, rax_listmle, None),
    (losses.listnet, rax_softmax, None),
    (losses.ranknet, rax_pairs, None),
    (losses.ranknet, rax_pairs, 3),
]


@pytest.mark.parametrize(("loss", "peer", "steps"), PAIRS)
def test_equals_rax(loss, peer, steps):
    rng = np.random.default_rng(0)
    where = rng.random((6, 9)) < 0.7
    where[:, :2] = True  # so that rax's reductions keep all lists
    scores, response = (jnp.asarray(a, jnp.float32) for a in (rng.normal(0.0, 5.0, (6, 9)), rng.random((6, 9))))
    response, where = jnp.round(response * steps) if steps else response, jnp.asarray(where)
    results = []
    # rax promotes types as it goes.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for one in (loss, peer):
            values = jax.jit(lambda s, one=one: one(s, response, where=where))
            gradient = jax.jit(jax.grad(lambda s, values=values: jnp.sum(values(s))))
            results.append((values(scores), gradient(scores)))
    (ours, our_gradient), (theirs, their_gradient) = results
    assert ours.shape == (6,)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(our_gradient, their_gradient, rtol=1e-4, atol=1e-5)
