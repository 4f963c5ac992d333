"""Promotion, against asynchronous successive halving as its authors write it, with halves rounded up.

Ranks of several objectives are compared with loops over fronts and over the cells of a grid.
"""

import itertools
import math

import numpy as np
import pytest

from dre_jax.suggest.hypervolume import exclusive_volumes
from dre_jax.suggest.polar import exclusive_volumes_by_rays
from dre_jax.tuning.fidelity.promotion import ranks_at_budget, share_going_on, training_to_promote


def promoted_by_authors(rungs: list[dict[int, float]], share: float) -> tuple[int, int] | None:
    """Algorithm 2 of Li et al. (2020), with the reduction factor 1 / share: the training and its rung."""
    for k in reversed(range(len(rungs) - 1)):
        top = sorted(rungs[k], key=lambda i: -rungs[k][i])[: math.ceil(round(share * len(rungs[k]), 6))]
        waiting = [i for i in top if i not in rungs[k + 1]]
        if waiting:
            return waiting[0], k
    return None


@pytest.mark.parametrize("seed", range(5))
def test_it_is_asynchronous_successive_halving(seed: int) -> None:
    shares = dict.fromkeys(range(1, 21), 1 / 2) | {n: 1 - 5**0.5 / n**0.5 for n in range(21, 41)}
    random = np.random.default_rng(seed)
    values, lengths = random.normal(size=(40, 4)), np.zeros(40, int)
    rungs: list[dict[int, float]] = [{} for _ in range(4)]
    n = 0
    for _ in range(200):
        started = np.arange(n)
        i = training_to_promote(values[started, :, None], lengths[started], lengths[started] < 4, n_first=8)
        expected = promoted_by_authors(rungs, shares[n]) if n >= 8 else None
        assert (None if i is None else (i, int(lengths[i]) - 1)) == expected
        if i is None:
            if n == 40:
                break
            i, n = n, n + 1
        rungs[lengths[i]][i] = values[i, lengths[i]]
        lengths[i] += 1
    assert len(rungs[3]) >= 4


def test_more_go_on_once_many_have_started() -> None:
    assert [share_going_on(n) for n in (1, 8, 20)] == [0.5] * 3
    np.testing.assert_allclose([share_going_on(n) for n in (45, 80, 500)], [2 / 3, 3 / 4, 9 / 10])
    for n, n_best in ((20, 10), (45, 30), (80, 60), (500, 450)):
        values, lengths = np.arange(n, 0.0, -1.0)[:, None, None].repeat(2, axis=1), np.full(n, 2)
        for i, is_best in ((n_best - 1, True), (n_best, False)):
            paused = np.arange(n) == i
            promoted = training_to_promote(values, lengths - paused, paused, n_first=8)
            assert promoted == (i if is_best else None)


def test_the_best_of_the_first_ones_goes_on_to_the_end() -> None:
    values, lengths = np.random.default_rng(0).normal(size=(8, 4)), np.ones(8, int)
    best = int(values[:, 0].argmax())
    for _ in range(3):
        assert training_to_promote(values[..., None], lengths, lengths < 4, n_first=8) == best
        lengths[best] += 1
    assert training_to_promote(values[:7, :, None], np.ones(7, int), np.ones(7, bool), n_first=8) is None


def test_a_training_that_may_not_go_on_keeps_its_place() -> None:
    responses, lengths = np.array([[[0.9], [0.0]], [[0.5], [0.0]], [[0.4], [0.0]]]), np.array([1, 1, 1])
    assert training_to_promote(responses, lengths, np.array([False, False, True]), n_first=1) is None
    assert training_to_promote(responses, lengths, np.array([False, True, True]), n_first=1) == 1


def volume_on_grid(points: np.ndarray, reference: np.ndarray) -> float:
    """The hypervolume by cells between the coordinates of all points."""
    edges = [np.unique([low, *column]) for low, column in zip(reference, points.T, strict=True)]
    total = 0.0
    for cell in itertools.product(*(range(len(edge) - 1) for edge in edges)):
        corner = np.array([edge[i + 1] for edge, i in zip(edges, cell, strict=True)])
        if any(np.all(point >= corner) for point in points):
            total += math.prod(edge[i + 1] - edge[i] for edge, i in zip(edges, cell, strict=True))
    return total


def order_by_definition(values: np.ndarray, reference: np.ndarray) -> list[int]:
    """Front after front; in each, the training first whose absence costs the front most hypervolume."""
    order, left = [], list(range(len(values)))
    while left:
        front = [
            i for i in left if not any(np.all(values[j] >= values[i]) and np.any(values[j] > values[i]) for j in left)
        ]
        total = volume_on_grid(values[front], reference)
        losses = {i: total - volume_on_grid(values[[j for j in front if j != i]], reference) for i in front}
        order += sorted(front, key=lambda i: -losses[i])
        left = [i for i in left if i not in front]
    return order


@pytest.mark.parametrize("m", [2, 3])
def test_several_objectives_rank_by_fronts_and_hypervolume(m: int) -> None:
    """The reference point is a tenth of the range below the worst values, or the one that is given."""
    values = np.random.default_rng(m).random((12, m))
    span = np.ptp(values, axis=0)
    order = [int(i) for i in np.argsort(ranks_at_budget(values))]
    assert order == order_by_definition(values, values.min(axis=0) - 0.1 * span)
    point = np.full(m, -1.0)
    order = [int(i) for i in np.argsort(ranks_at_budget(3.0 * values - 0.5, 3.0 * point - 0.5))]
    assert order == order_by_definition(values, point)
    np.testing.assert_array_equal(ranks_at_budget(values, np.full(m, 9.0)), ranks_at_budget(values))


def test_of_one_objective_ranks_are_those_of_the_values() -> None:
    values = np.array([3.0, -math.inf, 3.0, 1e30, math.inf])
    assert ranks_at_budget(values[:, None]).tolist() == [3, 5, 3, 2, 1]


def test_several_objectives_promote_the_best_half() -> None:
    """Of four trainings, the two ends of the front stay: their contribution to its volume is less."""
    ends, middle = [[0.0, 1.0], [1.0, 0.0]], [[0.6, 0.5], [0.5, 0.6]]
    responses = np.repeat(np.array([*ends, *middle])[:, None], 2, axis=1)
    lengths, promoted = np.ones(4, int), []
    while (i := training_to_promote(responses, lengths, lengths < 2, n_first=4)) is not None:
        promoted.append(i)
        lengths[i] += 1
    assert sorted(promoted) == [2, 3]


def test_rays_agree_with_the_volumes_of_boxes() -> None:
    values = np.random.default_rng(0).random((9, 3))
    reference = np.full(3, -0.1)
    front = values[ranks_at_budget(values, reference) <= 4]
    np.testing.assert_allclose(
        exclusive_volumes_by_rays(front, reference), exclusive_volumes(front, reference), atol=0.01
    )
    assert ranks_at_budget(np.random.default_rng(0).random((9, 5))).min() == 1
