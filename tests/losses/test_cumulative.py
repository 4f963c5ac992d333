import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.losses import cumulative

# The first is one of the others, by platform: both have to be right wherever the tests run.
COMPILED = [
    jax.jit(f, static_argnames="reverse")
    for f in (cumulative.cumulative_logsumexp, cumulative._sum_in_rounds, cumulative._sum_one_by_one)
]


def numpys(x, factor, reverse):
    """NumPy's in float64; factors are added as logarithms."""
    order = slice(None, None, -1 if reverse else None)
    with np.errstate(divide="ignore"):
        terms = np.float64(x) + np.log(np.float64(factor))
    return np.logaddexp.accumulate(terms[..., order], axis=-1)[..., order]


def check(x, factor, reverse):
    x, factor = np.asarray(x, np.float32), np.asarray(factor, np.float32)
    expected = numpys(x, factor, reverse)
    for compiled in COMPILED:
        got = np.asarray(compiled(jnp.asarray(x), jnp.asarray(factor), reverse=reverse))
        assert got.dtype == np.float32
        # Half a unit in the last place of the largest number, and the rounding of the sum.
        np.testing.assert_allclose(got, expected, rtol=3e-7, atol=3e-6)


@pytest.mark.parametrize("reverse", [True, False])
def test_equals_a_loop_in_float64(reverse):
    rng = np.random.default_rng(0)
    for scale in (1.0, 100.0, 1e4):
        x = rng.uniform(-scale, scale, (8, 33))
        check(x, np.ones_like(x), reverse)
        check(np.sort(x, axis=-1), rng.uniform(0.1, 2.0, x.shape), reverse)
        factor = rng.uniform(0.1, 2.0, x.shape) * (rng.random(x.shape) > 0.4)
        factor[0] = 0.0  # nothing of the first list counts
        check(-np.sort(-x, axis=-1), factor, reverse)
    two_far_levels = np.where(np.arange(33) % 2 == 0, 1e4, -1e4) + np.linspace(0.0, 1.0, 33)
    check(np.tile(two_far_levels, (8, 1)), np.ones((8, 33)), reverse)


@pytest.mark.parametrize("length", [5, cumulative._LONGEST, cumulative._LONGEST + 1])
def test_only_short_lists_are_summed_item_by_item_and_not_on_a_cpu(length):
    sums = jax.jit(cumulative.cumulative_logsumexp, static_argnames="reverse")
    traced = sums.trace(jnp.zeros(length), jnp.ones(length), reverse=True)
    for platform in ("cpu", "cuda"):
        has_rounds = "stablehlo.while" in traced.lower(lowering_platforms=(platform,)).as_text()
        assert has_rounds == (platform == "cpu" or length > cumulative._LONGEST)


@pytest.mark.parametrize("length", [1, 7, cumulative._LONGEST, cumulative._LONGEST + 1])
def test_running_sums_are_numpys(length):
    x = np.random.default_rng(2).normal(size=(3, length)).astype(np.float32)
    result = jax.jit(cumulative.running_sum)(x)
    np.testing.assert_allclose(result, np.cumsum(x, axis=-1, dtype=np.float64), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("score", [np.inf, np.nan])
@pytest.mark.parametrize("compiled", COMPILED)
def test_scores_that_are_not_finite_come_to_an_end_and_do_not_get_lost(compiled, score):
    assert not np.isfinite(compiled(jnp.array([1.0, score, 2.0]), jnp.ones(3), reverse=True)[:2]).any()
