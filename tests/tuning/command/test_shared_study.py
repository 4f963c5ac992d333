"""Studies in Optuna's storages, which several processes share."""

import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dre_jax import Categorical, ConfigError, DataError, Float, RandomSearch, Space, Surrogate, from_studies
from dre_jax.tuning.command.runner import run_trials
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.objectives.objectives import best_trials
from tests.error_messages import raises_line

pytestmark = pytest.mark.usefixtures("even_points")
SPACE = Space({"x": Float(-1.0, 1.0), "k": Categorical(["a", None]), "y": Float(0.0, 1.0, when={"k": "a"})})


@pytest.fixture(params=["sqlite:///{}/study.db", "{}/study.log"])
def storage(request, tmp_path):
    return request.param.format(tmp_path)


def shared(storage, **options):
    return SharedStudy(storage, "study", SPACE, **options)


def test_processes_share_trials(storage):
    first, second = shared(storage, directions={"": "maximize"}, seed=0), shared(storage, seed=1)
    trials = [study.ask() for study in (first, second, first, second)]
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    assert len({tuple(trial.params.items()) for trial in trials}) == 4
    read = first._read_trials()
    for study, trial in zip((first, second, first), trials, strict=False):
        study.tell(trial.number, trial["x"])
    second.tell_failed(3)
    first._beat(read)  # of trials that have ended since
    assert [trial.state for trial in first.trials] == ["complete"] * 3 + ["failed"]
    assert [trial.params for trial in shared(storage).trials] == [trial.params for trial in trials]
    for study in (first, second):
        (best,) = best_trials(study.trials, study.named_directions)
        assert best.value == max(trial["x"] for trial in trials[:3])
    past = from_studies(storage.removeprefix("sqlite:///"), SPACE)
    assert past.direction == "maximize"
    assert past.tasks["study"].n_rows == 3


def test_a_trial_of_a_killed_process_runs_again_once(storage):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    killed, *others = (shared(storage, seed=seed) for seed in range(3))
    killed._worker = f"{platform.node()} {ended.pid}"
    elsewhere = shared(storage, seed=3)
    elsewhere._worker = f"another machine {ended.pid}"
    running, lost = elsewhere.ask(), killed.ask()
    again, other = (study.ask() for study in others)
    assert again.params == lost.params != other.params
    assert [trial.state for trial in others[0].trials] == ["running", "failed", "running", "running"]
    assert others[0].n_started == 3
    assert others[0].trials[running.number].params == running.params


def test_a_trial_of_a_silent_machine_runs_again(storage, monkeypatch):
    elsewhere, alive, here = (shared(storage, seed=seed) for seed in range(3))
    elsewhere._worker, alive._worker = "another machine 1", "a third machine 1"
    silent, running, now = elsewhere.ask(), alive.ask(), time.time()
    monkeypatch.setattr(time, "time", lambda: now + 700.0)
    assert [trial.state for trial in alive.trials] == ["running"] * 2  # a sign of life
    again, new = here.ask(), here.ask()
    assert again.params == silent.params
    assert new.params not in (silent.params, running.params)
    assert elsewhere.tell(silent.number, 1.0).state == "failed"  # it was late
    assert [trial.state for trial in here.trials] == ["failed", "running", "running", "running"]


def test_a_storage_that_fails_gives_one_line(tmp_path):
    study = shared(str(tmp_path / "study.log"))
    trial = study.ask()
    (tmp_path / "study.log").unlink()
    (tmp_path / "study.log").mkdir()
    for call in (study.ask, lambda: study.tell(trial.number, 1.0), lambda: study.trials):
        with raises_line(DataError, "study.log must be a storage of Optuna's studies, but: ", "Is a directory"):
            call()


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
    shared(storage, directions={"": "maximize"})
    with pytest.raises(DataError, match="of the direction given, minimize, but its own is maximize"):
        shared(storage, directions={"": "minimize"})
    with pytest.raises(DataError, match="another space"):
        SharedStudy(storage, "study", Space({"x": Float(0.0, 1.0)}))
    draws = Surrogate(SPACE, "random", RandomSearch(), None, direction="maximize")
    with pytest.raises(DataError, match="the surrogate learned to maximize, and the study is to minimize"):
        SharedStudy(storage, "other", SPACE, draws)
    assert SharedStudy(storage, "other", SPACE, draws, directions={"": "maximize"}).trials == ()  # there was none
    with pytest.raises(ConfigError, match="no limit of the expected gain"):
        shared(storage).gain_is_below(0.1)
    (tmp_path / "text").write_text("no storage")
    with pytest.raises(DataError, match="must be a journal of Optuna's studies, but line 1 is no entry"):
        shared(str(tmp_path / "text"))
