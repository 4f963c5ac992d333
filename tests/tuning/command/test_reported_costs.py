"""Costs and standard errors that commands print, and the end of a search that processes share."""

import math

import optuna
import pytest

from dre_jax.errors import ConfigError, DataWarning
from dre_jax.methods import find
from dre_jax.tuning import Float, Optimizer, Space, Surrogate
from dre_jax.tuning.command import runner
from dre_jax.tuning.command.commands import Command
from dre_jax.tuning.command.printed_value import PrintedNames, read_value
from dre_jax.tuning.command.runner import run_trials, study_in_file
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.command.templates import parse
from tests.error_messages import raises_line
from tests.processes import wait_until

SPACE = Space({"x": Float(0.0, 1.0)})
BOTH = PrintedNames((), "seconds", "error")


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(runner, "_POLL_INTERVAL", 0.002)


def shell(text, names):
    command = Command(("sh", "-c", text), names=names)
    wait_until(lambda: command.poll() or command.outcome)
    return command.outcome


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("loss: 0.5\nseconds: 12\nerror=0.1", 0.5),
        ("seconds=12 error=0.1 loss=0.5", 0.5),
        ("0.5\nseconds: 12\nerror: 0.1", 0.5),
        ("seconds: 11\nloss: 0.5\nseconds: 12\nerror: 0.1", 0.5),
        ("epoch 3: total seconds: 12, error: 0.1\nloss: 0.5", 0.5),
        ('{"loss": 0.5, "seconds": 12, "error": 0.1}', 0.5),
        ('{"value": 0.5, "seconds": 12, "error": 0.1}', 0.5),
        ("loss: 0.5\nepoch: 3\nseconds: 12\nerror: 0.1", None),
        ("seconds: 12\nerror: 0.1", None),
    ],
)
def test_numbers_with_a_name_are_not_the_value(output, value):
    outcome = shell(f"printf '%s\\n' '{output}'", BOTH)
    assert (outcome.value, outcome.cost, outcome.stderr) == (value, 12.0, 0.1)


def test_a_metric_may_be_the_cost():
    assert shell("echo loss: 0.5; echo seconds: 12", PrintedNames(["seconds"], "seconds"))[:1] == (12.0,)
    assert read_value("seconds: 12").value == 12.0, "without names, any number is the value"


@pytest.mark.parametrize("text", ["", "seconds: 0", "seconds: -1", "seconds: nan", "seconds: inf", "seconds: 1,5"])
def test_what_is_no_cost_is_unknown(text):
    outcome = shell(f"echo 0.5; echo '{text}'", PrintedNames((), "seconds"))
    assert (outcome.value, outcome.cost) == (0.5, None)


def test_a_failed_command_has_cost_something():
    assert shell("echo seconds: 3; exit 2", BOTH)[:2] == (None, "exit status 2")
    assert shell("echo seconds: 3; exit 2", BOTH).cost == 3.0


@pytest.mark.usefixtures("even_points")
def test_a_study_file_has_what_commands_print(study):
    script = "echo {x}; echo seconds: 1{trial}; echo error: 0.{trial}; [ {trial} != 1 ]"
    with study_in_file(study, SPACE) as optimizer:
        list(run_trials(optimizer, parse(["sh", "-c", script], SPACE), trials=3, names=BOTH))
    trials = Optimizer.load(study).trials
    assert [(trial.state, trial.cost, trial.stderr) for trial in trials] == [
        ("complete", 10.0, 0.0),
        ("failed", 11.0, None),
        ("complete", 12.0, 0.2),
    ]


@pytest.mark.usefixtures("even_points")
def test_a_name_that_is_not_printed_is_told_once(study):
    with study_in_file(study, SPACE) as optimizer, pytest.warns(DataWarning) as warned:
        list(run_trials(optimizer, parse(["echo", "{x}"], SPACE), trials=3, names=BOTH))
    assert sorted(str(one.message).partition(":")[0] for one in warned) == [
        "trial 0 printed no number from 0 with the name 'error' (--stderr)",
        "trial 0 printed no positive number with the name 'seconds' (--cost)",
    ]


def test_standard_errors_are_refused_before_the_first_command(study, tmp_path):
    surrogate = Surrogate(SPACE, "random", find("random").make(), None)
    template, storage = parse(["echo", "{x}"], SPACE), f"sqlite:///{tmp_path / 'study.db'}"
    with study_in_file(study, SPACE, surrogate) as optimizer:
        for one in (optimizer, SharedStudy(storage, "study", SPACE, surrogate)):
            with raises_line(ConfigError, "standard errors need a method that uses them"):
                list(run_trials(one, template, trials=3, names=BOTH))
            assert one.trials == ()
            with raises_line(ConfigError, "an expected gain needs hedged-prior"):
                list(run_trials(one, template, trials=3, stop_when_gain_below=0.1))


@pytest.mark.usefixtures("even_points")
def test_a_storage_has_what_commands_print(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = SharedStudy(storage, "study", SPACE, seed=0)
    study.tell(study.ask().number, 1.0, cost=3.0, stderr=0.25)
    study.tell_failed(study.ask().number, cost=4.0)
    study.tell(study.ask().number, 2.0)
    other = SharedStudy(storage, "study", SPACE)
    expected = [(3.0, 0.25), (4.0, None), (None, None)]
    assert [(trial.cost, trial.stderr) for trial in other.trials] == expected
    frozen_trials = optuna.load_study(study_name="study", storage=storage).trials
    assert frozen_trials[0].user_attrs.items() >= {"dre_jax:cost": 3.0, "dre_jax:stderr": 0.25}.items()


@pytest.mark.slow
def test_processes_that_share_a_study_stop_together(tmp_path):
    """As the optimizer of the same seed: each process counts the suggestions of the other one."""
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.optimize(lambda trial: (trial["x"] - 0.3) ** 2, 40, stop_when_gain_below=0.05)
    assert 10 < len(optimizer.trials) < 40
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    processes = [SharedStudy(storage, "study", SPACE, seed=0) for _ in range(2)]
    for i in range(len(optimizer.trials)):
        assert not any(process.gain_is_below(0.05) for process in processes)
        trial = processes[i % 2].ask()
        assert trial.params == optimizer.trials[i].params
        processes[i % 2].tell(trial.number, (trial["x"] - 0.3) ** 2)
        for process in processes:
            process._read_at = -math.inf
    assert all(process.gain_is_below(0.05) for process in processes)
    with raises_line(ConfigError, "threshold of the expected gain must be positive"):
        processes[0].gain_is_below(0.0)
