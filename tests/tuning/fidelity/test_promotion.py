"""Promotion, against asynchronous successive halving as its authors write it."""

import numpy as np
import pytest

from dre_jax.tuning.fidelity.promotion import training_to_promote


def promoted_by_authors(rungs: list[dict[int, float]]) -> tuple[int, int] | None:
    """Algorithm 2 of Li et al. (2020), with the reduction factor 2: the training and its rung."""
    for k in reversed(range(len(rungs) - 1)):
        top = sorted(rungs[k], key=lambda i: -rungs[k][i])[: len(rungs[k]) // 2]
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
    for _ in range(80):
        started = np.arange(n)
        i = training_to_promote(values[started], lengths[started], lengths[started] < 4, is_eager=False) if n else None
        expected = promoted_by_authors(rungs)
        assert (None if i is None else (i, int(lengths[i]) - 1)) == expected
        if i is None:
            if n == 40:
                break
            i, n = n, n + 1
        rungs[lengths[i]][i] = values[i, lengths[i]]
        lengths[i] += 1
    assert len(rungs[3]) >= 2


def test_an_eager_search_trains_the_first_one_to_the_end() -> None:
    responses, lengths = np.array([[0.5, 0.6, 0.7]]), np.array([1])
    assert training_to_promote(responses, lengths, lengths < 3, is_eager=False) is None
    assert training_to_promote(responses, lengths, lengths < 3, is_eager=True) == 0
    assert training_to_promote(responses, np.array([3]), np.array([False]), is_eager=True) is None


def test_a_training_that_may_not_go_on_keeps_its_place() -> None:
    responses, lengths = np.array([[0.9, 0.0], [0.5, 0.0], [0.4, 0.0]]), np.array([1, 1, 1])
    assert training_to_promote(responses, lengths, np.array([False, True, True]), is_eager=False) is None
    assert training_to_promote(responses, lengths, np.array([False, True, True]), is_eager=True) == 1
