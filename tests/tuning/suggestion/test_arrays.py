"""The rules of a study inside of programs, padded, against those of NumPy, and of NumPy against slow ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.tuning.objectives.front import has_diverged, order_by_front, unit_values
from dre_jax.tuning.suggestion.information import space_filling_share
from dre_jax.tuning.suggestion.signal import has_signal
from dre_jax.tuning.suggestion.state import StudyState, set_failed
from dre_jax.tuning.trials.responses import clip_responses, dense_ranks, rank_infeasible_last, relative_errors
from dre_jax.tuning.trials.selection import select_rows, select_trials

SLOTS = 96


def pad(values):
    return np.pad(values, [(0, SLOTS - len(values))] + [(0, 0)] * (values.ndim - 1), constant_values=7.0)


def test_a_signal_is_told_from_noise_alike():
    """Of up to 64 trials, and of more; values with ties, of a signal and of noise."""
    random, answers = np.random.default_rng(0), []
    with jax.enable_x64(True):
        compiled = jax.jit(has_signal)
        for n in (20, 33, 64, 90):
            points = random.random((n, 3))
            for noise in (0.0, 1.0, 3.0, 30.0):
                values = np.round(np.sin(6.0 * points[:, 0]) + noise * random.standard_normal(n), 2)
                expected = has_signal(points, values, np.ones(n, bool))
                assert bool(compiled(pad(points), pad(values), np.arange(SLOTS) < n)) == expected
                answers.append(bool(expected))
    assert {*answers} == {True, False}


def share_of(values):
    """The rule in words, of distinct values and their counts."""
    levels, counts = np.unique(values, return_counts=True)
    n, most = len(values), int(np.argmax(counts))
    if 2 * counts[most] <= n:
        return float(n == 1)
    few, is_best = n - counts[most] <= 2, most == len(levels) - 1
    return 1.0 if few and is_best else 0.5 if few or is_best else 0.0


def test_plateaus_are_alike():
    cases = [[3], [0] * 4, [7, 7, 7, 6], [7, 7, 7, 8], [7, 7, 9, 8, 7], [1, 2], [1, 1, 2, 2], [1, 2, 2, 2, 2, 3, 4, 5]]
    cases += [[np.inf, np.inf, 1.0], [-np.inf, 2.0, 2.0, 2.0], [-1e300] * 3, [0.0, 0.0, -0.0]]
    with jax.enable_x64(True):
        share = jax.jit(space_filling_share)
        for case in cases:
            values, where = pad(np.array(case, np.float64)), np.arange(SLOTS) < len(case)
            assert share(values, where) == space_filling_share(values, where) == share_of(case), case


def test_selected_trials_are_alike():
    """All of few; else the best quarter, and others from the first to the last; empty slots may be anywhere."""
    random = np.random.default_rng(1)
    compiled = jax.jit(select_rows)
    for n, room in ((5, 9), (9, 9), (20, 9), (60, 24), (SLOTS, 3)):
        where = np.zeros(SLOTS, bool)
        where[random.permutation(SLOTS)[:n]] = True
        scores = np.round(random.random(SLOTS).astype(np.float32), 1)
        rows, count = select_rows(scores, where, room)
        program_rows, program_count = compiled(scores, where, room)
        assert count == program_count == min(n, room)
        np.testing.assert_array_equal(rows[:count], program_rows[:count])
        filled = np.flatnonzero(where)
        np.testing.assert_array_equal(filled[select_trials(scores[where], room)], rows[:count])
        if n > room:
            top = filled[np.argsort(-scores[where], kind="stable")[: max(room // 4, 1)]]
            others = np.setdiff1d(filled, top)
            spaced = others[np.linspace(0, len(others) - 1, room - len(top)).round().astype(int)]
            np.testing.assert_array_equal(rows[:count], np.sort([*top, *spaced]))


def test_empty_slots_do_not_change_clipped_responses():
    with jax.enable_x64(True):
        for case in (
            [1.0, 2.0, 3.0, -1e12, -np.inf],
            [5.0],
            [np.inf, -np.inf],
            [np.inf, 1.0, 2.0, 2.0],
            [1e308, -1e308],
        ):
            values, where = np.array(case), np.arange(SLOTS) < len(case)
            clipped = clip_responses(jnp.asarray(pad(values)), where)
            np.testing.assert_array_equal(clipped[: len(case)], clip_responses(values))
            np.testing.assert_array_equal(clip_responses(pad(values), where)[: len(case)], clip_responses(values))


def test_errors_are_shares_of_the_range():
    errors, responses = np.array([0.5, 2.0, 9.0]), np.array([1.0, 5.0, 100.0])
    assert relative_errors(errors, responses, np.array([True, True, False])).tolist() == pytest.approx(
        [0.125, 0.5, 0.0]
    )


def fronts_of(values):
    """The numbers of the fronts by definition: of those left, the ones that no other dominates."""
    fronts, left = np.zeros(len(values)), set(range(len(values)))
    level = 0
    while left:
        front = [
            i for i in left if not any(np.all(values[j] >= values[i]) and np.any(values[j] > values[i]) for j in left)
        ]
        fronts[front], left, level = level, left - set(front), level + 1
    return fronts


def test_orders_by_fronts_are_alike():
    """With ties, equal trials and empty slots anywhere; the extremes of a front have the largest response."""
    random = np.random.default_rng(2)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda values, where: order_by_front(unit_values(values, where), where))
        for n in (1, 2, 7, 40):
            where = np.zeros(SLOTS, bool)
            where[random.permutation(SLOTS)[:n]] = True
            values = np.round(random.normal(size=(SLOTS, 2)), 1)
            unit = unit_values(values, where)
            np.testing.assert_allclose(np.ptp(unit[where], axis=0), 1.0 if n > 1 else 0.0)
            response = order_by_front(unit, where)
            np.testing.assert_allclose(compiled(values, where)[where], response[where], rtol=1e-12)
            fronts = fronts_of(values[where])
            np.testing.assert_array_equal(np.ceil(-response[where] / 2.0), fronts)
            first = values[where][fronts == 0]
            assert response[where][fronts == 0][first[:, 0].argmax()] == 1.0


def test_infeasible_trials_are_last_in_padded_programs():
    random = np.random.default_rng(3)
    with jax.enable_x64(True):
        compiled = jax.jit(rank_infeasible_last)
        for n, violated in ((5, 0.0), (5, 1.0), (30, 0.5)):
            responses, violations = random.normal(size=n), np.round(random.random(n) * (random.random(n) < violated), 1)
            responses[0] = np.inf
            ranked = compiled(jnp.asarray(pad(responses)), pad(violations), np.arange(SLOTS) < n)[:n]
            np.testing.assert_allclose(ranked, rank_infeasible_last(responses, violations), rtol=1e-12)
            np.testing.assert_array_equal(
                dense_ranks(violations, np.ones(n, bool)), np.unique(violations, return_inverse=True)[1]
            )


def test_trials_that_diverged_become_failures_in_padded_programs():
    """In front of the pending trials, and after the failures."""
    random = np.random.default_rng(4)
    points, objectives = random.random((SLOTS, 2)), random.normal(size=(SLOTS, 2))
    objectives[[3, 7]] = -np.inf, 1.0
    costs = np.arange(float(SLOTS))
    counts = np.int32(10), np.int32(2), random.random((8, 2)), np.int32(1)
    state = StudyState(points, np.zeros(SLOTS), *counts, objectives=objectives, costs=costs)
    rest = [0, 1, 2, 4, 5, 6, 8, 9]
    with jax.enable_x64(True):
        program = jax.jit(lambda state: set_failed(state, has_diverged(state.objectives, state.where)))
        for result in (program(state), set_failed(state, has_diverged(objectives, np.arange(SLOTS) < 10))):
            assert [int(count) for count in (result.n, result.n_pending, result.n_failed)] == [8, 2, 3]
            np.testing.assert_array_equal(result.points[:10], points[[*rest, 10, 11]])
            np.testing.assert_array_equal(result.costs[:8], costs[rest])
            np.testing.assert_array_equal(result.failures[:3], [counts[2][0], points[3], points[7]])
