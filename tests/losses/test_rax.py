"""The losses whose definitions meet rax's, with values and gradients from rax (Jagerman et al. 2022)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rax

from dre_jax.losses import listmle, listnet, ranknet


def softmaxed(labels, where):
    return jax.nn.softmax(labels, axis=-1, where=where)


def rax_listmle(scores, response, where):
    return rax.listmle_loss(scores, response, where=where, reduce_fn=None)


def rax_softmax(scores, response, where):
    return rax.softmax_loss(scores, response, where=where, label_fn=softmaxed, reduce_fn=None)


def rax_pairs(scores, response, where):
    one = jax.vmap(lambda s, r, w: rax.pairwise_logistic_loss(s, r, where=w, reduce_fn=jnp.sum))
    return one(scores, response, where)


PAIRS = {
    "listmle": (listmle, rax_listmle),
    "listnet": (listnet, rax_softmax),
    "ranknet": (ranknet, rax_pairs),
}


def lists(scale):
    """Lists without ties, with at least two items each, so that rax's reductions keep them all."""
    rng = np.random.default_rng(0)
    where = rng.random((6, 9)) < 0.7
    where[:, :2] = True
    arrays = (rng.normal(0.0, scale, (6, 9)), rng.random((6, 9)))
    return (*(jnp.asarray(a, jnp.float32) for a in arrays), jnp.asarray(where))


@pytest.mark.parametrize("scale", [1.0, 5.0])
@pytest.mark.parametrize("name", PAIRS)
def test_equals_rax(name, scale):
    scores, response, where = lists(scale)
    results = []
    # rax promotes types as it goes.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        for loss in PAIRS[name]:
            values = jax.jit(lambda s, loss=loss: loss(s, response, where=where))
            results.append((values(scores), jax.grad(lambda s, values=values: jnp.sum(values(s)))(scores)))
    (ours, our_gradient), (theirs, their_gradient) = results
    assert ours.shape == (6,)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(our_gradient, their_gradient, rtol=1e-4, atol=1e-5)


def test_ties_make_no_pair_in_either():
    scores, response, where = lists(2.0)
    response = jnp.round(response * 3.0)
    with jax.numpy_rank_promotion("allow"):
        expected = rax_pairs(scores, response, where)
    np.testing.assert_allclose(ranknet(scores, response, where=where), expected, rtol=1e-5)
