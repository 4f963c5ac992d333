"""What the definitions of losses imply: neither the order of the items nor a shift of all scores matters."""

import jax
import numpy as np
import pytest

from dre_jax import losses
from tests.losses.test_oracles import WEIGHTS, loss_of

SHIFTS = (-4096.0, -1.0, 64.0, 4096.0)
ITEMS = 8
TRANSLATED = ("listmle", "listnet", "ranknet")
"""Losses of differences of scores."""


@pytest.fixture(scope="module")
def lists():
    """Scores in steps of 1/64, so that shifted ones are exact, responses with ties, and slots without an item."""
    rng = np.random.default_rng(4)
    scores = np.round(rng.normal(0.0, 3.0, (12, ITEMS)) * 64) / 64
    response, where = rng.integers(0, 4, (12, ITEMS)) / 4, rng.random((12, ITEMS)) < 0.8
    return scores.astype(np.float32), response.astype(np.float32), where


def compiled(name, weights):
    loss = loss_of(name)
    return jax.jit(lambda scores, response, where: loss(scores, response, where=where, weights=weights))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", losses.LOSSES)
def test_the_order_of_the_items_does_not_matter(name, weights, lists):
    loss, rng = compiled(name, weights), np.random.default_rng(0)
    expected = np.asarray(loss(*lists))
    for _ in range(3):
        order = rng.permuted(np.tile(np.arange(ITEMS), (len(expected), 1)), axis=1)
        permuted = (np.take_along_axis(field, order, axis=1) for field in lists)
        np.testing.assert_allclose(loss(*permuted), expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_shift_of_all_scores_does_not_matter(name, lists):
    loss = compiled(name, "inverse_log")
    expected = np.asarray(loss(*lists))
    for shift in SHIFTS:
        # A denominator has the size of the scores, and with it its rounding.
        rounding = 2 * ITEMS * np.spacing(np.float32(abs(shift) + 16.0))
        np.testing.assert_allclose(loss(lists[0] + np.float32(shift), *lists[1:]), expected, rtol=0, atol=rounding)
