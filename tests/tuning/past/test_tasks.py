"""Past tasks from evaluations."""

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning import Evaluated, Float, Past, Space, Surrogate, Trial, from_frame, past_of
from tests.known_methods import TaskMeans

SPACE = Space({"x": Float(0.0, 1.0)})


def trials(values, name="x"):
    return [Evaluated({name: i / 10}, value) for i, value in enumerate(values)]


def test_the_direction_is_kept():
    past = past_of(SPACE, {"a": trials([1, 2, 3])}, direction="minimize", metric="loss")
    assert (past.direction, past.metric) == ("minimize", "loss")
    assert np.argmax(past.tasks["a"].y) == 0
    with pytest.raises(TypeError, match="direction"):
        past_of(SPACE, {})
    for make in (past_of, lambda space, tasks, direction: Past(space, tasks, direction=direction)):
        with pytest.raises(ConfigError, match="direction must be one of minimize, maximize, but got 'up'"):
            make(SPACE, {}, direction="up")


def test_scalars_of_other_libraries_are_numbers():
    values = [jnp.float32(0.5), np.float64(0.25), np.array(1), 10**400, jnp.nan]
    tasks = {"a": [Evaluated({"x": jnp.float32(i / 8)}, value) for i, value in enumerate(values)]}
    past = past_of(SPACE, tasks, direction="maximize")
    assert past.exclusions == ()
    np.testing.assert_allclose(past.tasks["a"].y, [0.5, 0.25, 1.0, 1.075])


@pytest.mark.parametrize("value", ["0.5", None, True])
def test_a_value_that_is_no_number(value):
    with pytest.raises(DataError, match=r"past task 'a' .*number"):
        past_of(SPACE, {"a": trials([0.5, value])}, direction="maximize")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["failed"], "failed"),
        (["failed", "failed"], "failed (2 trials)"),
        (["failed", "running"], "failed (1 trial), running (1 trial)"),
        (["running", "failed", "running"], "running (2 trials), failed (1 trial)"),
    ],
)
def test_each_state_of_unfinished_trials_has_its_count(states, words):
    evaluations = [*trials([1, 2, 3]), *(Trial(i, {"x": 0.5}, state) for i, state in enumerate(states))]
    rows = [{"x": i / 10, "value": i, "state": "complete"} for i in range(3)]
    rows += [{"x": 0.5, "value": None, "state": state} for state in states]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for past in (
        past_of(SPACE, {"study": evaluations}, direction="minimize"),
        from_frame(columns, SPACE, direction="minimize", task=None),
    ):
        assert [str(one) for one in past.exclusions] == [f"study: a trial must be complete, but is {words}"]


def test_a_fit_warns_of_exclusions(registries):
    tasks = {"good": trials([1, 2, 3]), "part": [*trials([1, 2, 3]), Evaluated({"x": 7}, 0.0)]}
    tasks |= {f"bad {i}": trials([1, 2, 3], "y") for i in range(19)}
    past = past_of(SPACE, tasks, direction="minimize")
    rule = "a task must have a hyperparameter of the space, x, but has none"
    reasons = "; ".join(f"bad {i}: {rule}" for i in range(3))
    with pytest.warns(DataWarning) as caught:
        Surrogate.fit(past, method=TaskMeans())
    rule = "19 of 21 past tasks are and trials of 1 other past task are left out (Past.exclusions lists the reasons)"
    assert str(caught[0].message) == f"{rule}: {reasons}; ..."


def test_a_fit_needs_tasks_of_the_space_with_different_configurations():
    past = past_of(SPACE, {"a": trials([1, 2])}, direction="minimize")
    with pytest.raises(DataError, match="past tasks must be of the space given, but are of Space"):
        Surrogate.fit(past, Space({"y": Float(0.0, 1.0)}))
    with pytest.raises(DataError, match=r"one past task, .*: a: .*at least 3"):
        Surrogate.fit(past, SPACE)
    past = past_of(SPACE, {"a": [Evaluated({"x": 0.5}, value) for value in range(5)]}, direction="maximize")
    (exclusion,) = past.exclusions
    assert exclusion.reason == "a task must have at least 3 different configurations with a value, but has 1"
