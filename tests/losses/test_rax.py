"""The losses whose definitions meet rax's, with values and gradients from rax (Jagerman et al. 2022)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rax

from dre_jax.losses import listmle, listnet, ranknet


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
    (listmle, rax_listmle, None),
    (listnet, rax_softmax, None),
    (ranknet, rax_pairs, None),
    (ranknet, rax_pairs, 3),
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
