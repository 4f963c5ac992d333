"""The rules of a study inside of compiled programs, against those of the host."""

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.tuning.compiled import information
from dre_jax.tuning.engine.plateau import space_filling_share
from dre_jax.tuning.engine.signal import has_signal
from dre_jax.tuning.trials.responses import clip_responses

SLOTS = 96


def pad(values):
    return np.pad(values, [(0, SLOTS - len(values))] + [(0, 0)] * (values.ndim - 1), constant_values=7.0)


def test_a_signal_is_told_from_noise_alike():
    """Of up to 64 trials, and of more; values with ties, of a signal and of noise."""
    random, answers = np.random.default_rng(0), []
    with jax.enable_x64(True):
        compiled = jax.jit(information.has_signal)
        for n in (20, 33, 64, 90):
            points = random.random((n, 3))
            for noise in (0.0, 1.0, 3.0, 30.0):
                values = np.round(np.sin(6.0 * points[:, 0]) + noise * random.standard_normal(n), 2)
                expected = has_signal(points, values)
                assert bool(compiled(pad(points), pad(values), np.arange(SLOTS) < n)) == expected
                answers.append(expected)
    assert {*answers} == {True, False}


def test_plateaus_are_alike():
    cases = [[3], [0] * 4, [0.3, 0.1 * 3, 0.3], [7, 7, 7, 6], [7, 7, 7, 8], [7, 7, 9, 8, 7], [1, 2], [1, 1, 2, 2]]
    cases += [[np.inf, np.inf, 1.0], [-np.inf, 2.0, 2.0, 2.0], [-1e300] * 3, [0.0, 0.0, -0.0]]
    with jax.enable_x64(True):
        share = jax.jit(information.space_filling_share, static_argnames="has_past")
        for case in cases:
            values, where = np.array(case, np.float64), np.arange(SLOTS) < len(case)
            arguments = np.zeros((SLOTS, 1)), pad(values), where
            assert share(*arguments, has_past=False) == space_filling_share(values[:, None]), case
            assert share(*arguments, has_past=True) == (
                0.0 if len(case) < 4 else min(space_filling_share(values[:, None]), 0.5)
            )


def test_empty_slots_do_not_change_clipped_responses():
    with jax.enable_x64(True):
        for case in (
            [1.0, 2.0, 3.0, -1e12, -np.inf],
            [5.0],
            [np.inf, -np.inf],
            [np.inf, 1.0, 2.0, 2.0],
            [1e308, -1e308],
        ):
            values = np.array(case)
            clipped = clip_responses(jnp.asarray(pad(values)), jnp.arange(SLOTS) < len(case), jnp)
            np.testing.assert_array_equal(clipped[: len(case)], clip_responses(values))
