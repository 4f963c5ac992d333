"""Promotion, against asynchronous successive halving as its authors write it, with halves rounded up."""

import math

import numpy as np
import pytest

from dre_jax.tuning.fidelity.promotion import training_to_promote


def promoted_by_authors(rungs: list[dict[int, float]]) -> tuple[int, int] | None:
    """Algorithm 2 of Li et al. (2020), with the reduction factor 2: the training and its rung."""
    for k in reversed(range(len(rungs) - 1)):
        top = sorted(rungs[k], key=lambda i: -rungs[k][i])[: math.ceil(len(rungs[k]) / 2)]
        waiting = [i for i in top if i not in rungs[k + 1]]
        if waiting:
            return waiting[0], k
    return None


@pytest.mark.parametrize("seed", range(5))
def test_it_is_asynchronous_successive_halving(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, lengths = random.normal(size=(40, 4)), np.zeros(40, int)
    rungs: list[dict[int, float]] = [{} for _ in range(4)]
    n = 0
    for _ in range(100):
        started = np.arange(n)
        i = training_to_promote(values[started], lengths[started], lengths[started] < 4, n_first=8)
        expected = promoted_by_authors(rungs) if n >= 8 else None
        assert (None if i is None else (i, int(lengths[i]) - 1)) == expected
        if i is None:
            if n == 40:
                break
            i, n = n, n + 1
        rungs[lengths[i]][i] = values[i, lengths[i]]
        lengths[i] += 1
    assert len(rungs[3]) >= 4


def test_the_best_of_the_first_ones_goes_on_to_the_end() -> None:
    values, lengths = np.random.default_rng(0).normal(size=(8, 4)), np.ones(8, int)
    best = int(values[:, 0].argmax())
    for _ in range(3):
        assert training_to_promote(values, lengths, lengths < 4, n_first=8) == best
        lengths[best] += 1
    assert training_to_promote(values[:7], np.ones(7, int), np.ones(7, bool), n_first=8) is None


def test_a_training_that_may_not_go_on_keeps_its_place() -> None:
    responses, lengths = np.array([[0.9, 0.0], [0.5, 0.0], [0.4, 0.0]]), np.array([1, 1, 1])
    assert training_to_promote(responses, lengths, np.array([False, False, True]), n_first=1) is None
    assert training_to_promote(responses, lengths, np.array([False, True, True]), n_first=1) == 1
