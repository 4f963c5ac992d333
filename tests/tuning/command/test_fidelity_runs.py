"""Commands that train in steps: they pause, and are resumed in the folder of their training, also after a kill."""

import shutil
import subprocess
import sys
from collections import Counter

import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.tuning import Fidelity, Float, Optimizer, Space, write_space
from dre_jax.tuning.command import runner
from dre_jax.tuning.command.runner import run_trials, study_in_file
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.fidelity import next_trial
from tests.processes import alive_in, wait_until

pytestmark = pytest.mark.usefixtures("even_points")
SPACE = Space({"x": Float(-1.0, 1.0)})
EPOCHS = Fidelity("epochs", 1, 4)
# One epoch a turn. A folder has one program at a time, and the log beside all folders says what each of them did.
TRAIN = """
mkdir "$1/lock" || { echo two programs in "$1" >&2; exit 9; }
trap 'rm -r "$1/lock"' EXIT
trap 'exit 3' TERM
done=$(cat "$1/epochs" 2>/dev/null || echo 0)
echo "$3 ${1##*/} $done $2" >> "$1/../log"
while [ "$done" -lt "$2" ]; do
  done=$((done + 1))
  echo "$done" > "$1/epochs"
  echo "epoch $done: loss $done"
  [ ! -e "$1/../hang-$3-$done" ] || { echo $$ > "$1/../hangs"; sleep 100 & wait; }
done
echo "$4"
"""


def train(before=""):
    """The arguments of a program that does something else first."""
    script = (before + TRAIN).replace("{", "{{").replace("}", "}}")
    return ["sh", "-c", script, "train", "{checkpoint}", "{budget}", "{trial}", "{x}"]


def kill_in_training(command, checkpoints, number, epoch):
    """Starts a search, and kills its process once the program of a trial hangs in an epoch; the program ends, too."""
    hang, hangs = checkpoints / f"hang-{number}-{epoch}", checkpoints / "hangs"
    hang.touch()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: hangs.exists() and hangs.read_text().endswith("\n"), process)
    process.kill()
    process.communicate()
    wait_until(lambda: not alive_in(int(hangs.read_text())))
    hang.unlink()
    hangs.unlink()


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(runner, "_POLL_INTERVAL", 0.002)


@pytest.fixture
def two_first(monkeypatch):
    """The first training goes on once two have started."""
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)


def run(study, *, trials=8, command=None, fidelity=EPOCHS, **options):
    """Runs a command a trial, with checkpoints beside the study; the study."""
    with study_in_file(study, SPACE, fidelity=fidelity) as optimizer:
        template = parse(command or train(), SPACE, has_fidelity=True)
        options = {"checkpoints": study.parent / "checkpoints"} | options
        for _ in run_trials(optimizer, template, trials=trials, **options):
            pass
        return optimizer


def log_of(study):
    """What the programs did: trial, folder, epochs at the start, and the budget."""
    return [line.split() for line in (study.parent / "checkpoints" / "log").read_text().splitlines()]


def expected_log(trials):
    """The same, from the trials alone."""
    lines, firsts = [], {}
    for trial in trials:
        before = trials[trial.resumes] if trial.resumes is not None else None
        firsts[trial.number] = trial.number if before is None else firsts[before.number]
        done = 0 if before is None else before.budget
        lines.append([str(trial.number), str(firsts[trial.number]), str(done), str(trial.budget)])
    return lines


def test_a_training_goes_on_in_its_folder(study):
    trials = run(study, trials=14).trials
    assert {trial.state for trial in trials} == {"paused", "complete"}
    assert [trial.value for trial in trials] == [trial["x"] for trial in trials]
    assert log_of(study) == expected_log(trials)
    epochs = {int(folder.parent.name): int(folder.read_text()) for folder in study.parent.glob("checkpoints/*/epochs")}
    assert epochs == {int(first): int(budget) for _, first, _, budget in log_of(study)}  # the last of each training
    assert Optimizer.load(study).trials == trials


def test_workers_share_the_budgets_and_no_training(study):
    optimizer = run(study, trials=None, total_budget=24, workers=2)
    assert {trial.state for trial in optimizer.trials} == {"paused", "complete"}  # the lock of a folder fails a program
    assert sorted(log_of(study)) == sorted(expected_log(optimizer.trials))
    trained = Counter(line[1] for line in log_of(study))
    assert max(trained.values()) > 1
    spent = sum(int(budget) - int(done) for *_, done, budget in log_of(study))
    assert optimizer.total_budget == spent
    assert 24 <= spent < 24 + 2


def test_two_programs_run_at_once_in_different_folders(study):
    """Each waits for the other one."""
    meet = "touch $1/../at-$3; until [ -e $1/../at-0 ] && [ -e $1/../at-1 ]; do sleep 0.01; done\n"
    result = run(study, command=train(meet), trials=2, workers=2, timeout=60)
    assert [(trial.state, trial.resumes) for trial in result.trials] == [("paused", None)] * 2


@pytest.mark.parametrize(("fault", "reason"), [("exit 5", "exit status 5"), ("kill -9 $$", "signal 9")])
def test_a_failed_trial_ends_its_training(study, fault, reason):
    """The second trial that resumes another one."""
    count = f'[ "$2" = 1 ] || {{ touch "$1/../resumed-$3"; [ "$(ls $1/../resumed-* | wc -l)" != 2 ] || {fault}; }}\n'
    outcomes = []
    with study_in_file(study, SPACE, fidelity=EPOCHS) as optimizer:
        template = parse(train(count), SPACE, has_fidelity=True)
        for progress in run_trials(optimizer, template, trials=14, checkpoints=study.parent / "checkpoints"):
            outcomes += progress.ended_trials
    (failed,) = (trial for trial in optimizer.trials if trial.state == "failed")
    assert reason in next(outcome.reason for trial, outcome in outcomes if trial.number == failed.number)
    assert failed.resumes is not None
    assert all(trial.resumes not in (failed.number, failed.resumes) for trial in optimizer.trials[failed.number + 1 :])


@pytest.mark.usefixtures("two_first")
def test_a_lost_checkpoint_is_told_and_starts_over(study):
    first = run(study, trials=2)
    shutil.rmtree(study.parent / "checkpoints")
    with pytest.warns(DataWarning, match=r"checkpoints/\d is empty, so that trial 2 starts over: .* trial \d"):
        optimizer = run(study, trials=3)
    lost = optimizer.trials[2]
    assert (lost.restarts, lost.state, optimizer.trials[:2]) == (True, "paused", first.trials)
    ((_, folder, done, budget),) = log_of(study)
    assert (folder, done, budget) == (str(lost.resumes), "0", "2")
    assert optimizer.total_budget == 1 + 1 + 2


def test_curves_between_budgets_are_kept_and_stop_nothing(study):
    fidelity = Fidelity("epochs", 2, 8)
    optimizer = run(study, trials=12, fidelity=fidelity, curve=r"epoch (\d+): loss (\S+)")
    assert {trial.state for trial in optimizer.trials} == {"paused", "complete"}
    for trial, (*_, done, budget) in zip(optimizer.trials, log_of(study), strict=True):
        assert trial.reports == {float(epoch): float(epoch) for epoch in range(int(done) + 1, int(budget) + 1)}
    study.unlink()
    with pytest.warns(DataWarning, match="trial 0 printed no line .*: the study knows no curves"):
        run(study, trials=1, curve=r"(\d+) of (\S+)", checkpoints=study.parent / "more")


def test_a_study_goes_on_with_its_own_fidelity(study):
    run(study, trials=1)
    for fidelity, given in ((Fidelity("epochs", 1, 5), "epochs=1:5"), (None, "none")):
        with pytest.raises(DataError, match=f"with the fidelity epochs=1:4, and continues .* but got {given}"):
            run(study, fidelity=fidelity)
    study.unlink()
    Optimizer(SPACE).save(study)
    with pytest.raises(DataError, match="is a study without a fidelity"):
        run(study)
    with study_in_file(study, SPACE) as optimizer, pytest.raises(ConfigError, match="needs a study with a fidelity"):
        list(run_trials(optimizer, parse(["echo", "{x}"], SPACE), trials=None, total_budget=3))


@pytest.mark.usefixtures("two_first")
def test_a_kill_at_any_access_of_the_study_loses_nothing(study, left_by_kills, tmp_path):
    """What a kill leaves ends with the trials of a run that nobody killed, and repeats none that had ended."""
    folder, finished, states = tmp_path / "run", [], {}
    folder.mkdir()
    copies = left_by_kills(folder, lambda: finished.append(run(folder / study.name, trials=5)))
    (expected,) = finished
    assert any(trial.resumes is not None for trial in expected.trials)
    for copy in copies:
        files = (copy / study.name, *copy.glob("checkpoints/*/epochs"))
        states[tuple((path.relative_to(copy), path.read_bytes()) for path in files if path.exists())] = copy
    assert len(states) > 10  # before and after each trial
    for copy in states.values():
        killed, checkpoints = copy / study.name, copy / "checkpoints"
        trials = Optimizer.load(killed).trials if killed.exists() else ()
        n_ended = sum(trial.state != "running" for trial in trials)
        for path in (checkpoints / "log", *checkpoints.glob("*/lock")):  # the lock of a program that is killed, too
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        assert run(killed, trials=5).trials == expected.trials
        numbers = [int(number) for number, *_ in log_of(killed)] if n_ended < 5 else []
        assert numbers == list(range(n_ended, 5))


@pytest.mark.multiprocess
@pytest.mark.slow
def test_kills_of_the_process_in_the_middle_of_trainings(study, tmp_path):
    """In the first trial, in one that resumes another one, and after its last epoch."""
    alone, checkpoints, space = tmp_path / "alone.json", tmp_path / "checkpoints", tmp_path / "space.json"
    write_space(space, SPACE)

    def tune_command(file, folder):
        folder.mkdir()
        options = [
            "--space",
            space,
            "--study",
            file,
            "--fidelity",
            "epochs=2:4",
            "--trials",
            9,
            "--checkpoints",
            folder,
        ]
        return list(map(str, [sys.executable, "-m", "dre_jax", "tune", *options, "--", *train()]))

    subprocess.run(tune_command(alone, tmp_path / "alone"), capture_output=True, check=True)
    expected = Optimizer.load(alone).trials
    assert [(trial.budget, trial.resumes is None) for trial in expected] == [(2, True)] * 8 + [(4, False)]
    command = tune_command(study, checkpoints)
    for number, epoch in ((0, 1), (8, 3), (8, 4)):
        kill_in_training(command, checkpoints, number, epoch)
        assert [trial.state for trial in Optimizer.load(study).trials] == ["paused"] * number + ["running"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("best of 9 trials, epochs 18: ")
    assert Optimizer.load(study).trials == expected
    first = str(expected[8].resumes)
    assert log_of(study) == [
        ["0", "0", "0", "2"],
        ["0", "0", "1", "2"],  # from the epoch that it had written
        *([number, number, "0", "2"] for number in "1234567"),
        *(["8", first, done, "4"] for done in "234"),
    ]
