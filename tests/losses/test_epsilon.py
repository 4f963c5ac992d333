"""Why the running log-sum-exp is exact: the reference's epsilon takes the gradient of items that are far behind."""

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.losses import listmle


def reference(scores, top=jnp.max):
    """The reference code's loss of scores in the order of relevance, without position weights."""
    shifted = scores - top(scores)
    suffix = jnp.flip(jnp.cumsum(jnp.flip(jnp.exp(shifted))))
    return jnp.sum(jnp.log(suffix + 1e-10) - shifted)


def truth(scores):
    """Its gradient in float64, without the epsilon: sum over the denominators i <= j of exp(s_j) / sum_i, less one."""
    s = np.asarray(scores, np.float64)
    suffix = [np.logaddexp.reduce(s[i:]) for i in range(len(s))]
    return np.array([sum(np.exp(s[j] - suffix[i]) for i in range(j + 1)) - 1.0 for j in range(len(s))])


# The tail is in the wrong order and far behind the leader.
SCORES = jnp.array([100.0, 1.0, 2.0, 3.0])
RESPONSE = jnp.array([0.9, 0.6, 0.4, 0.1])


exact = jax.jit(jax.grad(lambda scores: listmle(scores, RESPONSE)))
with_epsilon = jax.jit(jax.grad(reference))


def test_both_forms_agree_while_the_scores_are_close():
    close = SCORES / 100.0
    np.testing.assert_allclose(with_epsilon(close), truth(close), atol=1e-5)
    np.testing.assert_allclose(exact(close), truth(close), atol=1e-5)


def test_the_epsilon_kills_the_gradient_of_the_tail_and_the_exact_form_keeps_it():
    expected = truth(SCORES)
    assert np.abs(expected[1:]).min() > 0.05
    # With the epsilon the tail's denominators vanish beside 1e-10: all that is left is -1, whatever their order.
    np.testing.assert_array_equal(with_epsilon(SCORES)[1:], -1.0)
    np.testing.assert_allclose(exact(SCORES), expected, atol=1e-5)


def test_the_epsilon_makes_scores_drift():
    def loss(scores):
        return reference(scores, top=lambda s: jax.lax.stop_gradient(jnp.max(s)))

    # The gradient of a function of differences sums to zero; here all of the tail is pushed up without end.
    assert float(jnp.sum(jax.jit(jax.grad(loss))(SCORES))) < -2.5
    assert abs(float(jnp.sum(exact(SCORES)))) < 1e-5


def test_an_overtaken_leader_is_pulled_back_from_any_distance():
    scores = jnp.array([-1e4, -1e3, 0.0, 1e4])  # a unit in the last place is 1e-3, and three terms are summed
    np.testing.assert_allclose(exact(scores), truth(scores), atol=3e-3)
