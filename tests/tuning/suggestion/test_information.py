"""Searches whose values say nothing: what counts as information, and trials that fill the space."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.tuning import Float, Optimizer, Space, Surrogate
from dre_jax.tuning.suggestion.information import information_of, space_filling_share
from dre_jax.tuning.suggestion.space_filling import order_by_outcome
from dre_jax.tuning.suggestion.state import StudyState
from tests.known_methods import Valued

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def share_of(*values):
    """With an empty slot."""
    return space_filling_share(np.array([*values, 7.0]), np.arange(len(values) + 1) < len(values))


def information_in(objectives):
    """Of a study whose trials have the values f[n, M]."""
    n, none = np.int32(len(objectives)), np.int32(0)
    state = StudyState(np.zeros((n, 1)), np.zeros(n), n, none, np.zeros((0, 1)), none, np.array(objectives))
    return information_of(state, has_past=False).space_filling_share


class TestEvenShare:
    """Which values say where better ones are."""

    @pytest.mark.parametrize(
        "values", [[3], [0] * 4, [0.1 * 3, 0.3, 0.3], [7, 7, 7, 6], [7, 7, 7, 6, 5, 7], [-1e300] * 3]
    )
    def test_nothing_is_better(self, values):
        assert share_of(*values) == 1.0

    @pytest.mark.parametrize("values", [[7, 7, 7, 8], [7, 7, 9, 8, 7], [0, 1, 1, 1, 2e-300, 0.5, 1, 1]])
    def test_few_differ(self, values):
        assert share_of(*values) == 0.5

    @pytest.mark.parametrize("values", [[1, 2], [1, 2, 3], [1, 1, 2, 2], [1, 1, 1, 1, 2, 3, 4], [1e9, 1e9 + 1, 1e9]])
    def test_values_differ(self, values):
        assert share_of(*values) == (0.5 if values[:1] == values[2:] else 0.0)

    def test_one_objective_with_information_is_enough(self):
        assert information_in([[1.0, 2.0], [1.0, 3.0], [1.0, 4.0]]) == 0.0
        assert information_in([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]) == 1.0


def test_points_near_failures_come_last():
    points = np.array([[0.9], [0.1], [0.7], [0.2]])
    for trials, succeeded, failed, expected in (
        ([[0.0], [1.0]], [True, False], [False, True], [1, 3, 0, 2]),
        ([[0.1], [0.085], [0.6]], [True, False, False], [False, True, True], [3, 0, 1, 2]),
        ([[0.1], [0.6]], [False, False], [False, False], [0, 1, 2, 3]),
        ([[0.1], [0.6]], [False, False], [False, True], [0, 1, 2, 3]),
        ([[0.1], [0.69]], [False, False], [False, True], [0, 1, 3, 2]),
    ):
        arrays = points, np.array(trials), np.array(succeeded), np.array(failed), 0.02
        assert order_by_outcome(*arrays).tolist() == expected
        assert order_by_outcome(*map(jnp.asarray, arrays[:4]), 0.02).tolist() == expected


def cells(optimizer):
    """The quarters, in each of which two numbers lie, as counts of 16 cells."""
    return np.histogram2d(*np.array([[t["x"], t["y"]] for t in optimizer.trials]).T, 4, [[0, 1], [0, 1]])[0]


def tell_constant(optimizer, trial):
    optimizer.tell(trial, 0.5)


def tell_last_digits(optimizer, trial):
    optimizer.tell(trial, [0.3, 0.1 * 3][trial.number % 2])


def tell_one_worse(optimizer, trial):
    optimizer.tell(trial, 0.7 if trial.number == 2 else 0.5)


def tell_two_objectives(optimizer, trial):
    optimizer.tell(trial, {"a": 1.0, "b": 2.0})


def tell_violation(optimizer, trial):
    optimizer.tell(trial, trial["x"], constraints={"c": 1.0})


@pytest.mark.parametrize(
    "tell",
    [tell_constant, tell_last_digits, tell_one_worse, tell_two_objectives, tell_violation],
)
def test_equal_values_leave_no_gap(tell):
    """Sixteen trials of a Sobol sequence have one in each sixteenth of a square, of side 1/4, and 64 have four."""
    directions = {"a": "minimize", "b": "maximize"} if tell is tell_two_objectives else None
    optimizer = Optimizer(SQUARE, seed=3, directions=directions)
    for n in (1, 4):
        while len(optimizer.trials) < 16 * n:
            tell(optimizer, optimizer.ask())
        assert (cells(optimizer) == n).all()


@pytest.mark.thorough
def test_noise_is_not_followed_to_the_boundary():
    """Of even trials, 0.36 are within 0.1 of an edge; of the method's, as the first twenty are, 0.8."""
    near_edge = []
    for seed in range(2):
        optimizer, noise = Optimizer(SQUARE, seed=seed), np.random.default_rng(seed)
        optimizer.optimize(lambda trial, noise=noise: noise.normal(), 60)
        near_edge += [min(t["x"], t["y"], 1.0 - t["x"], 1.0 - t["y"]) < 0.1 for t in optimizer.trials]
    assert np.mean(near_edge) < 0.6


def test_pending_trials_continue_the_sequence():
    optimizer = Optimizer(SQUARE, seed=1)
    for trial in optimizer.ask(8):
        optimizer.tell(trial, 1.0)
    optimizer.ask(8)
    assert (cells(optimizer) == 1).all()


def test_failures_keep_trials_away():
    """Where half of the space fails, more than half of the trials succeed; a random search has half."""
    optimizer = Optimizer(SQUARE, seed=0)
    for _ in range(32):
        trial = optimizer.ask()
        optimizer.tell(trial, 0.9) if trial["x"] < 0.5 else optimizer.tell_failed(trial)
    succeeded = [trial["y"] for trial in optimizer.trials if trial.state == "complete"]
    assert len(succeeded) >= 22
    assert np.histogram(succeeded, 4, (0, 1))[0].min() >= 4


def test_a_band_is_found():
    """Loss 0.9 outside of half a decade of a learning rate, at which a search of edges never looks."""
    space = Space({"lr": Float(1e-6, 10.0, log=True), "wd": Float(1e-6, 1.0, log=True), "drop": Float(0.0, 0.9)})
    for seed in range(3):
        optimizer = Optimizer(space, seed=seed)
        is_in_band = lambda trial: -3.5 < math.log10(trial["lr"]) < -2.5 and trial["drop"] < 0.5  # noqa: E731
        while len(optimizer.trials) < 40 and not any(map(is_in_band, optimizer.trials)):
            optimizer.tell(optimizer.ask(), 0.9)
        assert any(map(is_in_band, optimizer.trials))


def test_a_sampler_continues_the_sequence():
    optuna = pytest.importorskip("optuna")
    from dre_jax.tuning.optuna import DRESampler
    from dre_jax.tuning.optuna.distributions import translation_of

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=DRESampler(SQUARE, seed=2))
    for _ in range(16):
        trial = study.ask(dict(zip("xy", translation_of(SQUARE).distributions.values(), strict=True)))
        study.tell(trial, 0.5)
    points = np.array([[trial.params["x"], trial.params["y"]] for trial in study.trials])
    assert (np.histogram2d(*points.T, 4, [[0, 1], [0, 1]])[0] == 1).all()


def test_a_past_keeps_half_of_the_trials():
    """Its first suggestions stay, and while values are equal, every other pair of trials is the method's."""
    surrogate = Surrogate(SQUARE, "rising", Valued(lambda history, x: x[:, 0]), None, ({"x": 0.25, "y": 0.5},))
    optimizer = Optimizer(SQUARE, surrogate, direction="maximize", seed=0)
    for _ in range(12):
        optimizer.tell(optimizer.ask(), 0.5)
    x = np.array([trial["x"] for trial in optimizer.trials])
    assert x[0] == 0.25
    assert (x[[1, 2, 3, 6, 7, 10, 11]] > 0.95).all()
    assert (x[[4, 5, 8, 9]] < 0.95).all()
