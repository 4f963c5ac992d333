"""Acquisition functions against scipy in float64, and the choice among their values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from dre_jax.errors import ConfigError
from dre_jax.runtime import kept_programs
from dre_jax.search import acquisition
from dre_jax.search.acquisition import (
    ACQUISITIONS,
    UNDEFINED_INDEX,
    AcquisitionConfig,
    acquire_by_rank,
    acquire_by_response,
    log_augmented_improvement,
    log_expected_improvement,
    pick,
)
from tests import oracles
from tests.error_messages import raises_line

log_ei = jax.jit(log_expected_improvement)
by_rank = jax.jit(acquire_by_rank, static_argnums=0)


def test_augmented_improvement_is_huangs_factor_times_the_improvement():
    """Where nothing is left but noise it vanishes; noise beyond the resolution counts as that much."""
    deviation = np.array([1e-7, 1e-4, 1e-3, 0.1, 1.0], np.float32)
    noise = np.array([1e-4, 1e-4, 2e-4, 5e-4, 0.3], np.float32)
    mean = -deviation
    result = jax.jit(log_augmented_improvement)(mean, deviation, np.zeros_like(mean), noise)
    s, n = deviation.astype(float), noise.astype(float)
    expected = oracles.log_augmented_improvement(s, s, 0.0, n)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert (result <= log_ei(mean, deviation, np.zeros_like(mean))).all()
    config = AcquisitionConfig(kind="ei")
    by_response = acquire_by_response(config, -mean, deviation, np.float32(0.0), noise)
    np.testing.assert_allclose(by_response, result, rtol=1e-5)
    first = acquire_by_response(config, -mean, deviation, np.float32(-np.inf), noise)
    np.testing.assert_allclose(first, -mean)  # without an incumbent the mean decides


N_MEMBERS, N_CANDIDATES = 4, 9
WHERE = np.array([True, True, False, True, True, True, False, True, True])


def member_scores():
    """With ties, also with the incumbent."""
    scores = np.random.default_rng(1).integers(0, 6, (N_MEMBERS, N_CANDIDATES + 1)).astype(np.float32)
    return scores[:, :-1], scores[:, -1]


def rank_statistics(scores, incumbent_scores=None):
    """Mean and deviation of the ranks of the candidates that count, the incumbent last among them."""
    columns = scores[:, WHERE] if incumbent_scores is None else np.column_stack([scores[:, WHERE], incumbent_scores])
    ranks = np.array([stats.rankdata(-row, method="average") for row in columns])
    return ranks.mean(axis=0), ranks.std(axis=0)


def acquire(kind, has_incumbent=True, beta=1.0):
    scores, incumbent = member_scores()
    return np.asarray(by_rank(AcquisitionConfig(kind=kind, beta=beta), scores, WHERE, incumbent, has_incumbent))[WHERE]


RULES = {
    "ei": lambda mean, dev, best: oracles.log_improvement(-mean, dev, -best),
    "pi": lambda mean, dev, best: special.log_ndtr((best - mean) / dev),
    "lcb": lambda mean, dev, best: -(mean - 2.5 * dev),
    "mean_rank": lambda mean, dev, best: -mean,
}


@pytest.mark.parametrize("kind", RULES)
def test_the_incumbent_is_ranked_among_the_candidates(kind):
    mean, deviation = rank_statistics(*member_scores())
    assert deviation[:-1].min() > 0.1
    expected = RULES[kind](mean[:-1], deviation[:-1], mean[-1])
    np.testing.assert_allclose(acquire(kind, beta=2.5), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["ei", "pi", "mean_rank"])
def test_without_an_incumbent_the_mean_rank_decides(kind):
    mean, _ = rank_statistics(member_scores()[0])
    np.testing.assert_allclose(acquire(kind, has_incumbent=False), -mean, rtol=1e-6)


many_picks = jax.jit(jax.vmap(pick, in_axes=(None, None, 0)))
ALL, SOME, FEW = [True] * 6, [True, False, True, True, False, True], [True, False, False, True, False, False]
NAN = np.nan


@pytest.mark.parametrize(
    ("values", "where", "expected"),
    [
        ([0.0, -1.0, 7.0, 6.9, 3.0, 1.0], ALL, {2}),
        ([5.0, 1.0, 5.0, 5.0, 0.0, 5.0], ALL, {0, 2, 3, 5}),
        *(([value] * 6, SOME, {0, 2, 3, 5}) for value in (0.0, -np.inf, np.inf)),
        ([NAN] * 6, SOME, {UNDEFINED_INDEX}),
        ([9.0, np.inf, 2.0, NAN, np.inf, 30.0], SOME, {5}),
        ([9.0] * 6, [False] * 6, {-1}),
        ([NAN, -1e30, NAN, NAN, NAN, NAN], ALL, {1}),
        ([NAN, 5.0, 4.0, NAN, 1.0, 2.0], FEW, {UNDEFINED_INDEX}),
    ],
)
def test_the_highest_that_counts_is_picked_and_equal_ones_are_drawn_evenly(values, where, expected):
    keys = jax.random.split(jax.random.key(2), 1800)
    drawn = np.asarray(many_picks(jnp.asarray(values, jnp.float32), jnp.asarray(where), keys))
    assert set(drawn) == expected
    assert len(expected) == 1 or stats.chisquare(np.unique_counts(drawn).counts).pvalue > 1e-3


@pytest.mark.parametrize("x64", [False, True])
def test_log_expected_improvement_and_its_gradient_from_end_to_end(x64):
    """The derivative of log h(z) is cdf(z) / h(z); far out, of series in which nothing is lost."""
    tail = np.geomspace(1e-3, 1e4, 60)
    z = np.unique(np.float32(np.concatenate([-tail, tail, [0.0, -1.0, -8.0, -18.0], np.linspace(-20.0, 3.0, 231)])))
    with jax.enable_x64(x64):
        z = z.astype(np.float64 if x64 else np.float32)
        one, zero = z.dtype.type(1.0), z.dtype.type(0.0)
        result = jax.jit(jax.vmap(jax.value_and_grad(lambda z: log_expected_improvement(-z, one, zero))))(z)
    if x64:
        np.testing.assert_allclose(log_expected_improvement(-z, one, zero), result[0], rtol=1e-9, atol=1e-9)
    # cdf / pdf and h / pdf (Abramowitz and Stegun 1972, equation 26.2.12), where z is below -15.
    z = z.astype(np.float64)
    far = np.minimum(z, -15.0)
    signs = [(-1.0) ** k * special.factorial2(2 * k - 1) if k else 1.0 for k in range(9)]
    mills = sum(sign * far ** (-2.0 * k) for k, sign in enumerate(signs)) / -far
    gain = sum(-sign * far ** (-2.0 * k) for k, sign in enumerate(signs) if k)
    near = np.maximum(z, -15.0)
    pdf, cdf = stats.norm.pdf(near), stats.norm.cdf(near)
    h = np.where(z < -15.0, gain, pdf + near * cdf)
    expected = np.where(z < -15.0, stats.norm.logpdf(z), 0.0) + np.log(h), np.where(z < -15.0, mills, cdf) / h
    # In the middle the logarithm is of a difference of nearly equal numbers.
    for values, exact, tolerance in zip(result, expected, (1e-8, 1e-8) if x64 else (2e-5, 2e-4), strict=True):
        assert values.dtype == (np.float64 if x64 else np.float32)
        np.testing.assert_allclose(values, exact, rtol=tolerance, atol=tolerance)


PACKAGE = """
from dre_jax.search import Acquisition
THEIRS = Acquisition(lambda config, mean, deviation, incumbent: config.beta - mean, scale="linear")
"""


def are_programs_kept():
    return all(condition() for condition in kept_programs._conditions)


@pytest.fixture
def installed(install):
    """A package with an acquisition function "theirs", which no test before has loaded."""
    acquisition._load_installed.cache_clear()
    points = {"theirs": "THEIRS", "number": "__name__", "missing": "NOTHING"}
    install("their_functions", PACKAGE, "dre_jax.acquisitions", points)
    yield
    acquisition._load_installed.cache_clear()


def test_an_acquisition_function_of_an_installed_package(installed):
    """No look-up registers it, and no program with it is kept, since its file may be edited."""
    before, were_kept = dict(ACQUISITIONS), are_programs_kept()
    config = AcquisitionConfig(kind="theirs", beta=3.0)
    values = acquire_by_response(config, jnp.array([1.0, 2.0]), jnp.ones(2), jnp.float32(0.0))
    assert values.tolist() == [4.0, 5.0]  # beta minus the cost, which is minus the response
    assert (were_kept, are_programs_kept()) == (True, False)
    assert before == ACQUISITIONS


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("number", "their_functions:__name__ must be an Acquisition, but is 'their_functions'"),
        ("missing", "their_functions:NOTHING cannot be loaded: AttributeError"),
        ("their", "acquisition must be one of ei, pi, lcb, mean_rank, missing, number, theirs, but got 'their'"),
        (3, "but got 3"),
    ],
)
def test_unknown_acquisition_functions(installed, kind, message):
    with raises_line(ConfigError, message):
        AcquisitionConfig(kind=kind)
    assert are_programs_kept()
