"""What every loss must hold to, in one table."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import losses


def gaussian(mean, response, where=None):
    return losses.gaussian_nll(mean, response, variance=0.3 + response**2, where=where)


OF_DIFFERENCES = {
    "listmle": losses.listmle,
    "listmle-inverse_log": partial(losses.listmle, weights="inverse_log"),
    "listnet": losses.listnet,
    "ranknet": partial(losses.ranknet, weights="inverse_linear"),
}
LOSSES = {
    **OF_DIFFERENCES,
    "subset_regression": partial(losses.subset_regression, weights="inverse_log"),
    "mean_squared_error": partial(losses.mean_squared_error, weights="inverse_linear"),
    "gaussian_nll": gaussian,
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def with_gradient(name, scores, response, where):
    """Values of all lists, and the gradient of their sum."""

    def total(scores):
        values = LOSSES[name](scores, response, where=where)
        return jnp.sum(values), values

    (_, values), gradient = jax.value_and_grad(total, has_aux=True)(scores)
    return values, gradient


@cache
def compiled(name):
    return jax.jit(partial(with_gradient, name))


def evaluate(name, scores, response, where=None):
    """As `with_gradient`, compiled, in and out of NumPy."""
    where = np.ones(response.shape, bool) if where is None else where
    arrays = (np.asarray(scores, np.float32), np.asarray(response, np.float32), where)
    return jax.tree.map(np.asarray, compiled(name)(*map(jnp.asarray, arrays)))


def tied_lists(shape=(4, 7), seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 2.0, shape).astype(np.float32), np.round(rng.random(shape) * 4).astype(np.float32) / 4


def insert_empty_slots(scores, response, empty, garbage):
    """Lists that are longer by the slots named, which hold garbage."""
    length = scores.shape[-1] + len(empty)
    kept = np.setdiff1d(np.arange(length), empty)
    where = np.zeros((len(scores), length), bool)
    where[:, kept] = True
    longer = np.full((2, *where.shape), garbage, np.float32)
    longer[0][:, kept], longer[1][:, kept] = scores, response
    return *longer, where, kept


@pytest.mark.parametrize("garbage", [0.5, -1e30, np.nan])
@pytest.mark.parametrize("empty", [[7, 8, 9], [0, 1, 2], [0, 4, 9]], ids=["behind", "ahead", "between"])
@every_loss
def test_empty_slots_change_nothing(name, empty, garbage):
    scores, response = tied_lists()
    values, gradient = evaluate(name, scores, response)
    *padded, kept = insert_empty_slots(scores, response, empty, garbage)
    padded_values, padded_gradient = evaluate(name, *padded)
    np.testing.assert_allclose(padded_values, values, rtol=2e-6)
    np.testing.assert_allclose(padded_gradient[:, kept], gradient, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(padded_gradient[:, empty], 0.0)


@every_loss
def test_masking_is_dropping(name):
    scores, response = tied_lists()
    where = np.random.default_rng(1).permuted(np.arange(7) < 4 + np.zeros((4, 1)), axis=1)
    values, gradient = evaluate(name, scores, response, where)
    for i, items in enumerate(where):
        value, kept = evaluate(name, scores[i][items], response[i][items])
        np.testing.assert_allclose(values[i], value, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradient[i][items], kept, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(gradient[~where], 0.0)


@every_loss
def test_an_empty_list_is_zero_and_pulls_nothing(name):
    scores, response = tied_lists()
    values, gradient = evaluate(name, scores, response, np.zeros(scores.shape, bool))
    np.testing.assert_array_equal(values, 0.0)
    np.testing.assert_array_equal(gradient, 0.0)


@every_loss
def test_compiled_vmapped_and_in_a_loop_are_one(name):
    scores, response = tied_lists()
    expected, gradient = evaluate(name, scores, response)
    arrays = jnp.asarray(scores), jnp.asarray(response)
    for f in (LOSSES[name], jax.vmap(LOSSES[name])):
        np.testing.assert_allclose(f(*arrays), expected, rtol=2e-6)
    one_by_one = [evaluate(name, *row) for row in zip(scores, response, strict=True)]
    np.testing.assert_allclose([value for value, _ in one_by_one], expected, rtol=2e-6)
    np.testing.assert_allclose([grad for _, grad in one_by_one], gradient, rtol=1e-5, atol=1e-6)


@every_loss
def test_batch_dimensions_are_kept(name):
    scores, response = tied_lists((2, 1, 2, 7))
    values, gradient = evaluate(name, scores, response)
    flat_values, flat_gradient = evaluate(name, scores.reshape(4, 7), response.reshape(4, 7))
    assert values.shape == (2, 1, 2)
    np.testing.assert_allclose(values.reshape(4), flat_values, rtol=2e-6)
    np.testing.assert_allclose(gradient.reshape(4, 7), flat_gradient, rtol=1e-5, atol=1e-6)


@every_loss
def test_the_order_of_the_items_does_not_matter(name):
    scores, response = tied_lists()
    where = np.random.default_rng(2).random(scores.shape) < 0.8
    order = np.random.default_rng(3).permutation(scores.shape[1])
    assert all(len(set(row)) < len(row) for row in response)
    values, gradient = evaluate(name, scores, response, where)
    moved_values, moved_gradient = evaluate(name, scores[:, order], response[:, order], where[:, order])
    np.testing.assert_allclose(moved_values, values, rtol=5e-6)
    np.testing.assert_allclose(moved_gradient, gradient[:, order], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OF_DIFFERENCES)
def test_a_shift_of_the_scores_does_not_matter(name):
    scores, response = tied_lists()
    scores = np.round(scores * 64) / 64  # so that the shift is exact
    values, gradient = evaluate(name, scores, response)
    shifted_values, shifted_gradient = evaluate(name, scores + 256.0, response)
    np.testing.assert_allclose(shifted_values, values, rtol=1e-4)
    np.testing.assert_allclose(shifted_gradient, gradient, atol=1e-4)
    np.testing.assert_allclose(gradient.sum(axis=-1), 0.0, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - set(OF_DIFFERENCES)))
def test_the_other_losses_see_a_shift(name):
    scores, response = tied_lists()
    assert np.abs(evaluate(name, scores + 1.0, response)[0] - evaluate(name, scores, response)[0]).min() > 1e-3


@every_loss
def test_far_scores_in_the_wrong_order_are_pulled_back(name):
    response = np.linspace(1.0, 0.0, 7)
    scores = [np.linspace(-limit, limit, 7) for limit in (100.0, 1e3, 1e4)] + [np.repeat([-1e4, 1e4], [3, 4])]
    values, gradient = evaluate(name, scores, np.stack([response] * 4))
    assert np.isfinite(values).all()
    assert np.isfinite(gradient).all()
    # The best item stands far behind the last and is pulled up, the last is pushed down.
    assert (gradient[:, 0] < -0.04).all()
    assert (gradient[:, -1] > 0.04).all()


@pytest.mark.parametrize("name", OF_DIFFERENCES)
def test_the_gradient_of_far_scores_sums_to_zero(name):
    response = np.linspace(1.0, 0.0, 7)
    _, gradient = evaluate(name, np.linspace(-1e4, 1e4, 7), response)
    assert np.abs(gradient).max() > 0.1
    # A unit in the last place of the scores is 1e-3, and the gradient holds their exponentials.
    np.testing.assert_allclose(gradient.sum(), 0.0, atol=5e-3 * np.abs(gradient).max())


@pytest.mark.parametrize("name", OF_DIFFERENCES)
def test_one_item_cannot_be_ranked(name):
    _, gradient = evaluate(name, *tied_lists(), np.eye(4, 7, dtype=bool))
    np.testing.assert_array_equal(gradient, 0.0)
