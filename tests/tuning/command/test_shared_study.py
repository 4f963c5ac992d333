"""Studies in Optuna's storages, which several processes share."""

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import optuna
import pytest
from optuna.storages import RetryHeartbeatStaleTrialCallback

from dre_jax import Categorical, ConfigError, DataError, Float, RandomSearch, Space, Surrogate, from_studies
from dre_jax.tuning.command.runner import run_trials
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.optuna.distributions import translation_of
from dre_jax.tuning.optuna.trials import TrialReader, read_trials
from dre_jax.tuning.trials.objectives import best_trials, objectives_of
from tests.conftest import REPOSITORY
from tests.error_messages import raises_line

pytestmark = pytest.mark.usefixtures("even_points")
SPACE = Space({"x": Float(-1.0, 1.0), "k": Categorical(["a", None]), "y": Float(0.0, 1.0, when={"k": "a"})})
DATABASE, JOURNAL = "sqlite:///{}/study.db", "{}/study.log"
in_each = pytest.mark.parametrize("storage", [DATABASE, JOURNAL], indirect=True)


@pytest.fixture(params=[pytest.param(DATABASE, marks=pytest.mark.thorough), JOURNAL])
def storage(request, tmp_path):
    """A journal, which is the quicker one, for tests that ask of every kind the same."""
    return request.param.format(tmp_path)


def shared(storage, **options):
    return SharedStudy(storage, "study", SPACE, **options)


@in_each
def test_processes_share_trials(storage):
    first, second = shared(storage, directions={"value": "maximize"}, seed=0), shared(storage, seed=1)
    trials = [study.ask() for study in (first, second, first, second)]
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    assert len({tuple(trial.params.items()) for trial in trials}) == 4
    for study, trial in zip((first, second, first), trials, strict=False):
        study.tell(trial.number, trial["x"])
    second.tell_failed(3)
    assert [trial.state for trial in first.trials] == ["complete"] * 3 + ["failed"]
    assert [trial.params for trial in shared(storage).trials] == [trial.params for trial in trials]
    for study in (first, second):
        (best,) = best_trials(study.trials, study.objectives)
        assert best.value == max(trial["x"] for trial in trials[:3])
    past = from_studies(storage.removeprefix("sqlite:///"), SPACE)
    assert past.direction == "maximize"
    assert past.tasks["study"].n_rows == 3


def ask_and_end(storage, n=1):
    """Asks for trials in a process that then ends without a word."""
    script = "import os, sys; from tests.tuning.command.test_shared_study import shared\n"
    script += "study = shared(sys.argv[1], seed=9)\nfor _ in range(int(sys.argv[2])):\n    study.ask()\nos._exit(9)"
    subprocess.run([sys.executable, "-c", script, storage, str(n)], cwd=REPOSITORY, check=False)


def states(study):
    study._read_at = -math.inf
    return [trial.state for trial in study.trials]


@pytest.mark.multiprocess
@pytest.mark.slow
def test_a_trial_of_a_killed_process_runs_again(storage):
    ask_and_end(storage)
    first, second = (shared(storage, seed=seed) for seed in range(2))
    assert first.n_started == 0
    lost, again, other = first.trials[0], first.ask(), second.ask()
    assert again.params == lost.params != other.params
    assert states(first) == ["failed", "running", "running"]
    assert first.n_started == 2


ELSEWHERE = {
    "of another machine": {"machine": "another boot pid:[1]"},
    "of another container, with this host name": {"machine": "this boot pid:[2]", "process": 1},
    "of an unknown system": {"machine": None},
}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_a_process_that_cannot_be_seen_lives_by_its_signs(place, storage, monkeypatch):
    """Its number is that of no process here, or of another one."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    elsewhere, alive, here = (shared(storage, seed=seed, silence=60.0) for seed in range(3))
    for study in (elsewhere, alive):
        study._worker |= {"process": ended.pid, "started": "0"} | ELSEWHERE[place]
    silent, running, now = elsewhere.ask(), alive.ask(), time.time()
    assert here.ask().number == 2  # the others live
    monkeypatch.setattr(time, "time", lambda: now + 59.0)
    alive._sign_at = -math.inf
    alive.keep_alive()
    monkeypatch.setattr(time, "time", lambda: now + 61.0)
    again, new = here.ask(), here.ask()
    assert again.params == silent.params
    assert new.params not in (silent.params, running.params)
    assert elsewhere.tell(silent.number, 1.0).state == "failed"  # it was late
    assert states(here) == ["failed", "running", "running", "running", "running"]
    assert alive.tell(running.number, 1.0).state == "complete"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")
def test_a_process_whose_number_another_one_has_is_lost(storage):
    """As the first process of a container that was restarted."""
    before, here = shared(storage, seed=0), shared(storage, seed=1)
    before._worker |= {"started": "1"}
    lost = before.ask()
    assert here.ask().params == lost.params


def test_a_hung_process_of_this_machine_is_lost(storage, monkeypatch):
    hung, here, now = shared(storage, seed=0, silence=20.0), shared(storage, seed=1), time.time()
    lost = hung.ask()
    monkeypatch.setattr(time, "time", lambda: now + 21.0)
    assert here.ask().params == lost.params


def test_identities_are_drawn(storage):
    first, second = (shared(storage, seed=seed) for seed in range(2))
    assert first._worker["id"] != second._worker["id"]
    assert first._worker["process"] == second._worker["process"]


def test_a_configuration_is_started_three_times_at_most(storage, monkeypatch):
    """Whatever it does to its process. Only the last time is a failure for the model."""
    now = time.time()
    params = []
    for i in range(5):
        monkeypatch.setattr(time, "time", lambda i=i: now + 1000.0 * i)
        params.append(shared(storage, seed=i).ask().params)
    study = shared(storage, seed=9)
    assert params[0] == params[1] == params[2] != params[3] == params[4]
    assert states(study) == ["failed"] * 4 + ["running"]
    reader = TrialReader(translation_of(SPACE), study._study._storage)
    read = read_trials(study._study.get_trials(), reader, study.objectives)
    assert [(trial.number, trial.state) for trial in read] == [(2, "failed"), (4, "running")]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_optunas_retried_trials_are_no_failures(storage):
    address = storage if "sqlite" in storage else None
    study = optuna.create_study(storage=address)
    distributions = translation_of(SPACE).distributions
    study.tell(study.ask({"x": distributions["x"], "k": distributions["k"]}), state=optuna.trial.TrialState.FAIL)
    RetryHeartbeatStaleTrialCallback()(study, study.trials[0])
    study.tell(study.ask({"x": distributions["x"], "k": distributions["k"]}), 1.0)
    read = read_trials(study.trials, TrialReader(translation_of(SPACE), study._storage), objectives_of())
    assert [(trial.number, trial.state) for trial in read] == [(1, "complete")]


@in_each
def test_a_trial_that_another_process_ends_is_passed_over(storage, monkeypatch):
    """While this one asks, and while it tells."""
    study, other = shared(storage, seed=0), shared(storage, seed=1)
    suggest, calls = SharedStudy._suggest, []

    def suggest_late(self, trial):
        calls.append(trial.number)
        if len(calls) == 1:
            other._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return suggest(self, trial)

    monkeypatch.setattr(SharedStudy, "_suggest", suggest_late)
    assert study.ask().number == 1
    other._study.tell(1, 3.0)
    study._sign_at = -math.inf
    study.keep_alive()
    assert study.tell(1, 5.0).value == 3.0
    monkeypatch.setattr(study._study, "tell", raise_ended)  # in the same moment
    assert study.tell(1, 5.0).value == 3.0


def test_no_trial_starts_after_the_time(storage):
    study = shared(storage, seed=0)
    assert study.ask_unless(lambda: True) is None
    assert (study.n_started, states(study)) == (0, ["failed"])
    assert study.ask().params == study.trials[0].params


def raise_ended(*args, **options):
    raise optuna.exceptions.UpdateFinishedTrialError


def test_a_long_command_gives_signs_of_life(storage):
    """Also if nobody reads the trials, as without a display."""
    study = shared(storage, silence=0.4)
    started = time.time()
    list(run_trials(study, parse(["sh", "-c", "sleep 1; echo 0.5", "{params}"], SPACE), trials=1))
    (trial,) = study._study.get_trials()
    assert trial.user_attrs["dre_jax:alive"] > started + 0.8


def test_a_storage_that_fails_gives_one_line(tmp_path):
    study = shared(str(tmp_path / "study.log"))
    trial = study.ask()
    (tmp_path / "study.log").unlink()
    (tmp_path / "study.log").mkdir()
    for call in (study.ask, lambda: study.tell(trial.number, 1.0), lambda: study.trials):
        with raises_line(DataError, "study.log must be a storage of Optuna's studies, but: ", "Is a directory"):
            call()


@in_each
@pytest.mark.slow
def test_commands_that_run_at_once_have_different_workers(storage, tmp_path):
    def run(seed):
        folder = tmp_path / str(seed)
        folder.mkdir()
        script = f'mkdir "{folder}/{{worker}}" && sleep 0.2 && rmdir "{folder}/{{worker}}" && echo "$0"'
        template = parse(["sh", "-c", script, "{x}", "{params}"], SPACE)
        list(run_trials(shared(storage, seed=seed), template, trials=6, workers=2))

    with ThreadPoolExecutor() as executor:
        list(executor.map(run, range(2)))
    trials = shared(storage).trials
    assert 6 <= len(trials) <= 9  # those that ask in the same moment may exceed the limit by one each
    assert all(trial.value == trial["x"] for trial in trials)


def test_refused(storage, tmp_path):
    shared(storage, directions={"value": "maximize"})
    with pytest.raises(DataError, match=r"direction .*minimize, .*maximize"):
        shared(storage, directions={"value": "minimize"})
    with pytest.raises(DataError, match="another space"):
        SharedStudy(storage, "study", Space({"x": Float(0.0, 1.0)}))
    draws = Surrogate(SPACE, "random", RandomSearch(), None, direction="maximize")
    with pytest.raises(DataError, match=r"surrogate .*maximize.*minimize"):
        SharedStudy(storage, "other", SPACE, draws)
    assert SharedStudy(storage, "other", SPACE, draws, directions={"value": "maximize"}).trials == ()  # there was none
    with raises_line(ConfigError, "silence must be positive, but got 0.0"):
        shared(storage, silence=0.0)
    (tmp_path / "text").write_text("no storage")
    with pytest.raises(DataError, match=r"journal .*line 1"):
        shared(str(tmp_path / "text"))
