"""Objectives: their names and directions from arguments, and what a study must share with them."""

import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.trials.objectives import (
    Objective,
    best_trials,
    direction_arguments,
    find_objective,
    objective_values,
    objectives_by_name,
    objectives_of,
    require_objectives,
    values_of,
)
from dre_jax.tuning.trials.trial import Trial
from tests.error_messages import error_table

BOTH = {"error": "minimize", "speed": "maximize"}


@pytest.mark.parametrize("arguments", [{"direction": "maximize"}, {"directions": BOTH}])
def test_objectives_are_those_of_their_arguments(arguments):
    objectives = objectives_of(**arguments)
    assert direction_arguments(objectives) == arguments
    assert objectives_by_name(dict(objectives)) == objectives
    require_objectives("study", objectives, dict(objectives))


def test_the_only_objective_is_called_value():
    assert objectives_of() == objectives_by_name({"value": None}) == (Objective("value", "minimize"),)
    assert find_objective(objectives_of("maximize"), None) == ("value", "maximize")
    assert objective_values(3, objectives_of()) == {"value": 3.0}


def test_values_are_turned_by_their_directions():
    several = [Trial(i, {}, "complete", values={"error": e, "speed": s}) for i, (e, s) in enumerate([(1, 2), (0, 1)])]
    assert values_of(several, objectives_of(directions=BOTH)).tolist() == [[-1.0, 2.0], [0.0, 1.0]]
    assert [trial.number for trial in best_trials(several, objectives_of(directions=BOTH))] == [1, 0]
    single = [Trial(i, {}, "complete", float(i)) for i in range(3)]
    assert [best_trials(single, objectives_of(way))[0].number for way in ("minimize", "maximize")] == [0, 2]


def test_an_objective_called_value_is_one_of_several():
    objectives = objectives_of(directions={"value": "minimize", "speed": "maximize"})
    trial = Trial(0, {}, "complete", values={"value": 3.0, "speed": 2.0})
    assert values_of([trial], objectives).tolist() == [[-3.0, 2.0]]
    assert find_objective(objectives, "value") == ("value", "minimize")


test_other_objectives_are_refused = error_table(
    ConfigError,
    (lambda: objectives_of("up"), "must be one of minimize, maximize, but got 'up'"),
    (lambda: objectives_of(directions={"value": "minimize"}), "must map the names of two or more objectives"),
    (lambda: objectives_of("maximize", BOTH), "has direction= or directions=, but got 'maximize'"),
    (lambda: objectives_of(directions={"a": "minimize", 1: "minimize"}), "must be a string, but got 1"),
    (lambda: objectives_of(directions={"a": "minimize", "b": "up"}), "direction of 'b' must be one of"),
    (lambda: find_objective(objectives_of(), "value"), "objectives of this study are None, but got objective='value'"),
    (lambda: find_objective(objectives_of(directions=BOTH), None), "are 'error', 'speed', but got objective=None"),
)

test_studies_of_other_objectives_are_refused = error_table(
    DataError,
    (
        lambda: require_objectives("s", objectives_of(), BOTH),
        "s must be a study of error, speed, but is one of one metric",
    ),
    (
        lambda: require_objectives("s", objectives_of(directions=BOTH), {**BOTH, "speed": "minimize"}),
        "direction of speed given, minimize, but its own is maximize",
    ),
    (lambda: objective_values((1.0,), objectives_of(directions=BOTH)), "'error', 'speed' to numbers, or be as many"),
)
