"""Trainings that several processes pause and resume, in one of Optuna's storages."""

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import optuna
import pytest
from optuna.trial import TrialState

from dre_jax.errors import DataError
from dre_jax.tuning import Fidelity, Float, Optimizer, Space, from_studies, write_space
from dre_jax.tuning.command import runner
from dre_jax.tuning.command.runner import run_trials
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.command.shared_trainings import SharedTrainings
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.fidelity import next_trial
from dre_jax.tuning.optuna.stopping import gain_is_below
from dre_jax.tuning.optuna.trials import IMPROVEMENT
from dre_jax.tuning.trials.objectives import AT_ANY_BUDGET, best_trials
from tests.error_messages import raises_line
from tests.tuning.command.test_fidelity_runs import kill_in_training, train

pytestmark = pytest.mark.usefixtures("even_points")
SPACE, EPOCHS = Space({"x": Float(-1.0, 1.0)}), Fidelity("epochs", 1, 4)
OBJECTIVES = {"error": "minimize", "size": "maximize"}
DATABASE, JOURNAL = "sqlite:///{}/study.db", "{}/study.log"
WRITES = ("create_new_trial", "set_trial_param", "set_trial_state_values")
WRITES += ("set_trial_user_attr", "set_trial_system_attr")
TUNE = """
import runpy
from dre_jax.tuning.command.shared_trainings import SharedTrainings
SharedTrainings._grace = 0.0
runpy.run_module("dre_jax", run_name="__main__")
"""


@pytest.fixture(params=[pytest.param(DATABASE, marks=pytest.mark.thorough), JOURNAL])
def storage(request, tmp_path):
    return request.param.format(tmp_path)


@pytest.fixture(autouse=True)
def two_first(monkeypatch):
    """The first training goes on once two have started; lost trials and polls are quick."""
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)
    monkeypatch.setattr(SharedTrainings, "_grace", 0.0)
    monkeypatch.setattr(runner, "_POLL_INTERVAL", 0.002)


def shared(storage, **options):
    return SharedTrainings(storage, "study", SPACE, **{"fidelity": EPOCHS} | options)


@pytest.fixture
def dead():
    """A function that opens the study for a process that has ended by the time that others look."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def of_dead(storage, **options):
        study = shared(storage, **options)
        study._worker |= {"process": ended.pid, "started": "0"}
        return study

    return of_dead


def value_of(study, trial):
    """One value, or two: one that falls with the budget, and one that does not."""
    value = trial["x"] ** 2 * (5 - trial.budget)
    return value if len(study.objectives) == 1 else {"error": value, "size": trial["x"]}


def run(study, n):
    for _ in range(n):
        trial = study.ask()
        study.tell(trial.number, value_of(study, trial))
    return study


def parts(storage):
    """The trials that count: number, training, what it resumes, budget, state and configuration; from Optuna alone."""
    trials = optuna.load_study(study_name="study", storage=open_optuna(storage)).trials
    return [
        (
            trial.number,
            trial.user_attrs.get("dre_jax:training", trial.number),
            trial.user_attrs.get("dre_jax:resumes"),
            trial.user_attrs.get("dre_jax:budget"),
            trial.state,
            tuple(trial.params.items()) or tuple(trial.system_attrs.get("fixed_params", {}).items()),
        )
        for trial in trials
        if not (trial.state == TrialState.FAIL and trial.user_attrs.get("dre_jax:retried"))
    ]


def open_optuna(storage):
    if "sqlite" in storage:
        return optuna.storages.RDBStorage(storage)
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(storage))


def check_trainings(trials):
    """Each training is a chain: of one configuration, of budgets that increase, each part resumed once."""
    by_number = {trial[0]: trial for trial in trials}
    assert max(Counter(trial[2] for trial in trials if trial[2] is not None).values(), default=1) == 1
    for number, training, resumes, budget, _, params in trials:
        if resumes is None:
            assert (budget, training <= number) == (1, True)
            continue
        before = by_number[resumes]
        assert before[4] == TrialState.PRUNED
        assert (before[1], before[5]) == (training, params)
        assert before[3] < budget <= 4
    return sum(budget - (0 if resumes is None else by_number[resumes][3]) for _, _, resumes, budget, *_ in trials)


def test_a_single_process_does_what_an_optimizer_does(storage):
    study, optimizer = run(shared(storage, seed=3), 12), Optimizer(SPACE, fidelity=EPOCHS, seed=3)
    run(optimizer, 12)
    assert study.trials == optimizer.trials
    assert study.total_budget == optimizer.total_budget
    assert best_trials(study.trials, study.objectives, AT_ANY_BUDGET) == [optimizer.best_so_far]
    assert check_trainings(parts(storage)) == optimizer.total_budget


def test_so_it_does_with_several_objectives(tmp_path):
    """And a study that is opened again goes on."""
    path, optimizer = str(tmp_path / "study.log"), Optimizer(SPACE, directions=OBJECTIVES, fidelity=EPOCHS, seed=3)
    run(shared(path, seed=3, directions=OBJECTIVES), 7)
    study = run(shared(path, seed=3, directions=OBJECTIVES), 3)
    run(optimizer, 10)
    assert study.trials == optimizer.trials
    assert any(trial.resumes is not None for trial in study.trials)
    assert check_trainings(parts(path)) == optimizer.total_budget
    failed = study.tell_failed(study.ask().number)
    assert (failed.state, failed.values) == ("failed", {})


@pytest.mark.parametrize("n_processes", [2, 4])
def test_processes_share_the_budgets_and_no_training(n_processes, storage, tmp_path):
    """Each has a storage and a study of its own, as those of other machines; the lock of a folder fails a program."""
    template, checkpoints = parse(train(), SPACE, has_fidelity=True), tmp_path / "checkpoints"
    barrier = threading.Barrier(n_processes)

    def work(seed):
        study = shared(storage, seed=seed)
        barrier.wait()
        for _ in run_trials(study, template, trials=None, total_budget=30, checkpoints=checkpoints):
            pass

    shared(storage)
    with ThreadPoolExecutor(n_processes) as executor:
        list(executor.map(work, range(n_processes)))
    trials = parts(storage)
    assert {trial[4] for trial in trials} == {TrialState.PRUNED, TrialState.COMPLETE}
    assert len({trial[5] for trial in trials}) == len({trial[1] for trial in trials})  # configurations and trainings
    assert 30 <= check_trainings(trials) < 30 + 2 * n_processes
    log = [line.split() for line in (checkpoints / "log").read_text().splitlines()]
    budgets = {trial[0]: trial[3] for trial in trials}
    expected = [
        [str(number), str(training), str(0 if resumes is None else budgets[resumes]), str(budget)]
        for number, training, resumes, budget, *_ in trials
    ]
    assert sorted(log) == sorted(expected)


def test_of_two_processes_one_resumes(storage):
    """Both have decided before either has written."""
    first, second = shared(storage, seed=0), shared(storage, seed=1)
    run(first, 2)
    step = second._sampler.promotion(second._study)
    resumed = first.ask()
    assert resumed.resumes == step.resumes
    steps = iter([step, step])
    second._sampler.promotion = lambda study: next(steps, None)
    other = second.ask()
    assert other.resumes is None
    assert other.params != resumed.params
    assert [trial.state for trial in first.trials].count("failed") == 2  # those that were withdrawn
    first.tell(resumed.number, 0.0)
    assert check_trainings(parts(storage)) == first.total_budget == 1 + 1 + 1 + 1


def test_a_lost_training_goes_on_in_its_folder(storage, dead, tmp_path):
    """The first part of a training, and one that resumes it."""
    lost = [dead(storage, seed=0).ask()]
    here = shared(storage, seed=1)
    again = here.ask()
    assert (again.params, again.budget, again.resumes) == (lost[0].params, 1, None)
    assert here.prepare_checkpoint(again, tmp_path).checkpoint == tmp_path / "0"
    here.tell(again.number, 0.0)
    run(here, 1)
    lost.append(dead(storage, seed=0).ask())
    assert lost[1].resumes == again.number
    assert shared(storage).total_budget == 2
    again = here.ask()
    assert (again.params, again.budget, again.resumes) == (lost[1].params, 2, lost[1].resumes)
    (tmp_path / "0" / "state").touch()
    assert here.prepare_checkpoint(again, tmp_path).checkpoint == tmp_path / "0"
    assert here.tell(again.number, 0.0).state == "paused"
    assert check_trainings(parts(storage)) == here.total_budget == 3


def test_a_lost_training_waits_until_its_program_has_ended(storage, dead, monkeypatch):
    """The shell that ends the program of a killed process gives it three seconds."""
    monkeypatch.undo()
    lost, here, clock = dead(storage, seed=0).ask(), shared(storage, seed=1), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    assert here.ask().params != lost.params
    assert here.awaited.startswith("trial 0 of process ")
    monkeypatch.setattr(time, "monotonic", lambda: clock + 4.0)
    assert here.ask().params != lost.params
    monkeypatch.setattr(time, "monotonic", lambda: clock + 6.0)
    assert here.ask().params == lost.params


def test_a_process_that_is_lost_three_times_ends_the_training(storage, dead):
    run(shared(storage, seed=0), 2)
    resumed = [dead(storage, seed=0).ask().resumes for _ in range(3)]
    new = shared(storage, seed=1).ask()
    assert resumed == [resumed[0]] * 3
    assert resumed[0] is not None
    assert new.resumes != resumed[0]


class Killed(BaseException):
    """Ends a process at a write to its storage."""


def kill_at(study, n):
    """Raises at the nth write of a study from now on, before it."""
    writes, storage = itertools.count(1), study._study._storage

    def write(method, *arguments, **options):
        if next(writes) >= n:
            raise Killed
        return method(*arguments, **options)

    for name in WRITES:
        setattr(storage, name, partial(write, getattr(storage, name)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_before", "options"),
    [
        pytest.param(1, {}, id="a new training"),
        pytest.param(2, {}, id="a resumed one"),
        pytest.param(2, {"directions": OBJECTIVES}, id="of several objectives", marks=pytest.mark.thorough),
    ],
)
def test_a_kill_at_any_write_loses_no_training(n_before, options, tmp_path, dead):
    """What it leaves has no part twice, and a configuration that was known runs on under its number."""
    numbers = set()
    for n in itertools.count(1):
        path = str(tmp_path / f"{n}.log")
        run(shared(path, seed=0, **options), n_before)
        killed = dead(path, seed=1, **options)
        kill_at(killed, n)
        with contextlib.suppress(Killed):
            run(killed, 1)
        left = parts(path)
        run(shared(path, seed=2, **options), 6)
        trials = parts(path)
        numbers.add(len(left))
        assert {state for *_, state, _ in trials} <= {TrialState.PRUNED, TrialState.COMPLETE}
        known = {(training, params) for _, training, *_, params in left if params}
        assert known <= {(training, params) for _, training, *_, params in trials}
        assert check_trainings(trials) == shared(path, **options).total_budget
        if len(left) > n_before and left[-1][4] == TrialState.PRUNED:  # not killed any more
            break
    assert n > 4
    assert numbers == {n_before, n_before + 1}


def test_a_lost_command_is_stopped(storage):
    """Once another process trains its configuration."""
    study, other = shared(storage, seed=0, silence=0.4), shared(storage, seed=1)
    template = parse(["sh", "-c", "sleep 600; echo 1", "{x}", "{budget}"], SPACE, has_fidelity=True)
    for progress in run_trials(study, template, trials=1):
        if progress.running:
            other._study.tell(0, state=TrialState.FAIL, skip_if_finished=True)
        ended = progress.ended_trials
    assert [trial.state for trial, _ in ended] == ["failed"]


def test_a_training_whose_checkpoint_is_lost_starts_over(storage, tmp_path):
    study = run(shared(storage, seed=0), 2)
    resumed = study.ask()
    with pytest.warns(UserWarning, match=rf"is empty, so that trial 2 starts over: .* trial {resumed.resumes}"):
        assert study.prepare_checkpoint(resumed, tmp_path).restarts
    study.tell(2, 0.0)
    assert shared(storage).trials[2].restarts
    assert study.total_budget == 1 + 1 + 2


def test_a_space_without_other_configurations_resumes_paused_ones(tmp_path):
    space = Space({"x": Float(0.0, 1.0, step=1.0)})
    study = SharedTrainings(str(tmp_path / "study.log"), "study", space, fidelity=EPOCHS, seed=0)
    run(study, 6)
    live = [trial for trial in study.trials if trial.state != "failed"]
    assert {trial.resumes is None for trial in live[:2]} == {True}
    assert [trial.budget for trial in live if trial.state == "complete"] == [4, 4]


def test_refused(storage):
    shared(storage)
    for fidelity, given in ((Fidelity("epochs", 1, 5), "epochs=1:5"), (Fidelity("epochs", 1, 4, log=False), "epochs")):
        with pytest.raises(DataError, match=f"study is a study with the fidelity epochs=1:4, .* but got {given}"):
            shared(storage, fidelity=fidelity)
    with raises_line(DataError, "study is a study with the fidelity epochs=1:4, ", "but got none"):
        SharedStudy(storage, "study", SPACE)
    SharedStudy(storage, "plain", SPACE)
    with raises_line(DataError, "plain is a study without a fidelity, ", "but got epochs=1:4"):
        SharedTrainings(storage, "plain", SPACE, fidelity=EPOCHS)


@pytest.mark.multiprocess
@pytest.mark.slow
def test_another_process_continues_the_training_of_a_killed_one(storage, tmp_path):
    """In the first trial, and in one that resumes another one."""
    checkpoints, space = tmp_path / "checkpoints", tmp_path / "space.json"
    checkpoints.mkdir()
    write_space(space, SPACE)
    options = ["--space", space, "--storage", storage, "--fidelity", "epochs=2:4", "--checkpoints", checkpoints]
    options += ["--trials", 9]
    command = list(map(str, [sys.executable, "-c", TUNE, "tune", *options, "--seed", "0", "--", *train()]))
    for number, epoch in ((0, 1), (9, 3)):  # trial 1 is the first one again
        kill_in_training(command, checkpoints, number, epoch)
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    trials = parts(storage)
    best = next(trial for trial in trials if trial[4] == TrialState.COMPLETE)
    assert f", epochs {check_trainings_of_two(trials)}: " in ended.stdout
    assert f"tune: checkpoint {checkpoints / str(best[1])}" in ended.stdout
    log = [line.split() for line in (checkpoints / "log").read_text().splitlines()]
    assert log[:2] == [["0", "0", "0", "2"], ["1", "0", "1", "2"]]
    assert log[-2:] == [["9", str(best[1]), "2", "4"], ["10", str(best[1]), "3", "4"]]
    assert len(log) == len(trials) + 2 == 11


def check_trainings_of_two(trials):
    """The budget of trials whose lowest one is 2."""
    return sum(budget if resumes is None else 2 for _, _, resumes, budget, *_ in trials)


def test_the_gain_is_that_of_new_configurations():
    """Resumed trials have no expected improvement; the best value at the highest budget counts."""

    def trial(number, state, value, **attributes):
        improvement = {} if "resumes" in attributes else {IMPROVEMENT: 0.01}
        names = {f"dre_jax:{name}": attribute for name, attribute in attributes.items()}
        made = optuna.trial.create_trial(state=state, values=[value], user_attrs=names, system_attrs=improvement)
        made.number = number
        return made

    new = [trial(number, TrialState.PRUNED, 1.0, budget=1) for number in range(12)]
    best = trial(0, TrialState.COMPLETE, 0.5, budget=4)
    resumed = trial(12, TrialState.COMPLETE, 0.45, budget=4, resumes=3)
    assert gain_is_below([best, *new[1:], resumed], "minimize", 0.1)
    assert not gain_is_below([best, *new[1:], resumed], "minimize", 0.01)


def test_paused_trainings_are_no_final_values_of_the_past(storage):
    study = run(shared(storage, seed=0), 18)
    n_complete = sum(trial.state == "complete" for trial in study.trials)
    past = from_studies(storage.removeprefix("sqlite:///"), SPACE)
    assert 2 < n_complete < 12
    assert past.tasks["study"].n_rows == n_complete
