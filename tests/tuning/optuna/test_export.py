"""Trials of an optimizer as a study of Optuna."""

import math

import matplotlib.pyplot as plt
import optuna
import pytest

from dre_jax.tuning import Categorical, Float, Int, Optimizer, Space
from dre_jax.tuning.optuna import to_study

SPACE = Space({"x": Float(0.0, 1.0), "k": Categorical(["a", None]), "n": Int(1, 5, when={"k": "a"})})


def small_study(**options):
    optimizer = Optimizer(SPACE, seed=0, **options)
    trials = optimizer.ask(4)
    for trial in trials[:2]:
        value = trial["x"] + (trial["k"] == "a")
        optimizer.report(trial, value, 3)
        optimizer.tell(trial, value, constraints={"size": trial["x"] - 0.5})
    optimizer.tell_failed(trials[2])
    return optimizer


@pytest.mark.usefixtures("quiet_optuna")
def test_trials_of_the_study(tmp_path):
    optimizer = small_study(direction="maximize")
    address = f"sqlite:///{tmp_path}/study.db"
    to_study(optimizer, storage=address, name="mine")
    study = optuna.load_study(study_name="mine", storage=address)
    assert study.direction == optuna.study.StudyDirection.MAXIMIZE
    assert [trial.params for trial in study.trials] == [trial.params for trial in optimizer.trials]
    assert [trial.value for trial in study.trials] == [trial.value for trial in optimizer.trials]
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]
    assert study.trials[0].intermediate_values == {3: optimizer.trials[0].value}
    assert [trial.constraints for trial in study.trials] == [trial.constraints for trial in optimizer.trials]
    assert study.trials[0].constraints.keys() == {"size"}


@pytest.mark.usefixtures("quiet_optuna")
def test_an_unknown_constraint_is_violated():
    optimizer = small_study()
    optimizer.tell(3, 0.0, constraints={"size": None})
    assert to_study(optimizer).trials[3].constraints == {"size": math.inf}


@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.parametrize(
    ("steps", "whole_steps"),
    [((0, 1, 20_000), (0, 1, 20_000)), ((0.05, 0.1 + 0.2, 1.0), (5, 30, 100)), ((1 / 3, 1.0), (333_333, 1_000_000))],
)
def test_steps_become_whole_numbers(steps, whole_steps):
    optimizer = Optimizer(SPACE, seed=0, direction="minimize")
    trial = optimizer.ask()
    for value, step in enumerate(steps):
        optimizer.report(trial, value, step)
    (exported,) = to_study(optimizer).trials
    assert exported.intermediate_values == dict(zip(whole_steps, range(len(steps)), strict=True))


@pytest.mark.usefixtures("quiet_optuna")
def test_what_waits_and_what_a_trial_cost():
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.add({"x": 0.5, "k": None}, 1.0, stderr=0.25, cost=3.0)
    optimizer.enqueue({"x": 0.25, "k": "a"})
    optimizer.enqueue({"n": 3})
    study = to_study(optimizer)
    assert study.trials[0].user_attrs == {"dre_jax:stderr": 0.25, "dre_jax:cost": 3.0}
    distributions = study.trials[0].distributions | {"n": optuna.distributions.IntDistribution(1, 5)}
    first, second = study.ask(distributions), study.ask(distributions)
    assert (first.params["x"], first.params["k"], second.params["n"]) == (0.25, "a", 3)


@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning", "ignore::UserWarning")
def test_optunas_functions_apply():
    study = to_study(small_study(direction="minimize"))
    assert set(optuna.importance.get_param_importances(study)) == {"x", "k", "n"}
    optuna.visualization.matplotlib.plot_slice(study)
    plt.close("all")


@pytest.mark.usefixtures("quiet_optuna")
def test_several_objectives():
    optimizer = Optimizer(SPACE, seed=0, directions={"error": "minimize", "speed": "maximize"})
    optimizer.optimize(lambda trial: {"error": trial["x"], "speed": 1.0 - trial["x"]}, n_trials=3)
    study = to_study(optimizer)
    assert study.metric_names == ["error", "speed"]
    assert [direction.name for direction in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    assert {trial.number for trial in study.best_trials} == {trial.number for trial in optimizer.front}
