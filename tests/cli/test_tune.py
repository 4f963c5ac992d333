"""``dre-jax tune``."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from dre_jax import Float, Optimizer, SearchSpace, Space, Surrogate, Task
from dre_jax.cli.trial_progress import signals_as_interrupts
from dre_jax.methods import find
from dre_jax.methods.storage.provenance import versions
from dre_jax.tuning.command import worker_identity
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.fidelity import next_trial
from dre_jax.tuning.past.studies import keep_studies
from tests.known_methods import zero_params
from tests.processes import alive_in, wait_until

SPACE = Space({"x": Float(-1.0, 1.0)})
WAIT = 120  # a hard limit on a busy machine, not a measurement


@pytest.fixture
def tune(tmp_path, space):
    """Arguments of the command, its files beside the space; an option that is True has no value."""

    def arguments(*command, **options):
        each = [
            (name, one) for name, value in options.items() for one in (value if isinstance(value, list) else [value])
        ]
        more = [[f"--{name}"] if value is True else [f"--{name}", value] for name, value in each]
        files = ["--space", space, "--study", tmp_path / "study.json"]
        return ["tune", *files, *(text for pair in more for text in pair), "--", *command]

    return arguments


def test_a_study_and_its_continuation(cli, tune, study, tmp_path):
    status, out, error = cli(*tune("echo", "{x}", trials=3, workers=2))
    assert status == 0
    result = Optimizer.load(study)
    values = [trial.params["x"] for trial in result.trials]
    assert [trial.value for trial in result.trials] == values
    best = min(range(3), key=values.__getitem__)
    head, params, saved = out.splitlines()
    assert head == f"best of 3 trials: {values[best]} (trial {best})"
    assert json.loads(params) == result.trials[best].params
    assert saved == f"tune: saved in {study}, picture {tmp_path / 'study.json.png'}"
    assert (tmp_path / "study.json.png").read_bytes().startswith(b"\x89PNG")
    facts = error.splitlines()
    assert facts[0] == "tune: 0/3 trials"
    assert facts[1].startswith("tune: read ")
    assert facts[1].endswith("'; --metric NAME reads another value")
    assert sorted(line.split(":")[0] for line in facts[2:]) == ["trial 0", "trial 1", "trial 2"]
    assert cli(*tune("echo", "{x}", trials=3))[1] == out  # nothing is left to do
    status, out, error = cli(*tune("echo", "{x}", trials=4, quiet=True))
    assert (status, error) == (0, "")
    assert out.startswith("best of 4 trials")
    assert Optimizer.load(study).trials[:3] == result.trials


def test_rules_of_a_file(cli, study, tmp_path):
    shares = {name: {"type": "float", "low": 0, "high": 1} for name in "abc"}
    rules = [
        {"count": ["a", "b", "c"], "at_most": 2},
        {"formula": "a * b + c <= 0.6"},
        {"sum": ["a", "b"], "at_least": 0.5},
    ]
    (tmp_path / "space.json").write_text(json.dumps({"parameters": shares, "rules": rules}))
    files = ["--space", tmp_path / "space.json", "--study", study]
    status, _, error = cli(
        "tune", *files, "--trials", 4, "--quiet", "--", "echo", '{{"value": {c}, "a": {a}, "b": {b}}}'
    )
    assert (status, error) == (0, "")
    for trial in Optimizer.load(study).trials:
        a, b, c = trial.params.values()
        assert a + b >= 0.5
        assert a * b + c <= 0.6
        assert sum(value != 0 for value in (a, b, c)) <= 2


@pytest.mark.parametrize("where", ["file", "storage"])
def test_an_order_of_items(cli, even_points, study, tmp_path, where):
    steps = {"type": "permutation", "items": ["cut", "wash", "dry"], "default": ["wash", "dry", "cut"]}
    (tmp_path / "space.json").write_text(json.dumps({"steps": steps}))
    kept = ["--study", study] if where == "file" else ["--storage", f"sqlite:///{tmp_path / 'tune.db'}"]
    program = ["--trials", 3, "--quiet", "--", "echo", '{{"value": 1, "steps": {steps}}}']
    status, out, error = cli("tune", "--space", tmp_path / "space.json", *kept, *program)
    assert (status, error) == (0, "")
    assert json.loads(out.splitlines()[1]) == {"steps": ["wash", "dry", "cut"]}
    if where == "file":
        trials = Optimizer.load(study).trials
        assert len({trial["steps"] for trial in trials}) == 3
        assert {frozenset(trial["steps"]) for trial in trials} == {frozenset(["cut", "wash", "dry"])}


@pytest.mark.parametrize("where", [pytest.param("file", marks=pytest.mark.thorough), "storage"])
def test_several_metrics(cli, tune, refused, study, tmp_path, where):
    """Of two values that are equal, one to be small and one to be large, no trial beats another."""
    kept = {} if where == "file" else {"storage": f"sqlite:///{tmp_path / 'tune.db'}"}
    options = {"metric": ["x", "y"], "trials": 4, "quiet": True} | kept  # of the start design, which compiles nothing
    page = tmp_path / "page.html"
    options |= {"report": page} if where == "file" else {}
    status, out, error = cli(*tune("echo", '{{"x": {x}, "y": {x}}}', **options, direction=["minimize", "maximize"]))
    assert (status, error) == (0, "")
    head, *front, saved = [line for line in out.splitlines() if line != f"tune: page {page}"]
    assert head == "front of 4 trials: 4"
    values = [json.loads(line.partition(": ")[2])["x"] for line in front]
    assert values == sorted(values)
    assert front[0].startswith(f"x {values[0]:g}, y {values[0]:g} (trial ")
    assert saved.startswith("tune: saved in ")
    assert (tmp_path / "study.json.png").read_bytes().startswith(b"\x89PNG")
    assert cli(*tune("echo", "{x}", **options))[1] == out  # directions are the study's, and nothing is left to do
    assert "one metric" in refused(*tune("echo", "{x}", **options | {"metric": "x"}))
    assert "minimize" in refused(*tune("echo", "{x}", **options, direction="minimize"))
    assert "each metric needs one" in refused(*tune("echo", "{x}", **options, surrogate="none"))
    assert "--curve" in refused(*tune("echo", "{x}", **options, curve="(.) (.)"))
    assert cli(*tune("echo", "{x}", **options | {"metric": ["y", "x"]}))[0] == 0  # the order of metrics does not matter
    if where == "file":
        content = page.read_text()
        kinds = [f"{kind} of {name}" for name in ("x", "y") for kind in ("History", "Slices", "Importance")]
        assert re.findall("<h2>(.*?)</h2>", content) == ["Front", *kinds, "Trials"]
        assert (content.count("<tr>"), content.count("data:image/png")) == (5, 7)
        loaded = Optimizer.load(study)
        assert all(trial.values == {"x": trial["x"], "y": trial["x"]} for trial in loaded.trials)
        assert loaded.directions == {"x": "minimize", "y": "maximize"}


REFUSED = {
    "pass --curve without --storage": {"curve": r"(\d) (\d)", "storage": True},
    "by its curve: pass --curve": {"past-curves": "none.csv", "storage": True},
    "silence must be positive": {"silence": 0, "storage": True},
    "timeout must be positive": {"timeout": -1, "storage": True},
    "total_timeout must be positive": {"timeout-total": 0, "storage": True},
    "direction must be one of minimize, maximize": {"direction": "up", "storage": True},
    "logs cannot be written: Not a directory": {"logs": "{}/space.json/logs", "storage": True},
    "'no-such-program': No such file": {"program": "no-such-program", "report": "{}/new/page", "storage": True},
    "space.json': Permission denied": {"program": "{}/space.json", "logs": "{}/new", "storage": True},
    "--silence needs --storage": {"silence": 5},
    "--past-curves needs --curve": {"past-curves": "none.csv"},
    "--fidelity must be NAME=LOWEST:HIGHEST, such as epochs=1:50, but got 'epochs'": {"fidelity": "epochs"},
    "but got 'epochs=1:many'": {"fidelity": "epochs=1:many"},
    "the lowest budget of 'epochs' must be below": {"fidelity": "epochs=4:1"},
    "must name {budget}, but does not": {"fidelity": "epochs=1:4"},
    "--checkpoints needs {checkpoint} in the command": {
        "fidelity": "epochs=1:4",
        "checkpoints": "{}/new",
        "program": "echo{{budget}}",
    },
    "--checkpoints and --total-budget need --fidelity": {"checkpoints": "{}/new"},
    "need --fidelity, but got none": {"total-budget": 5},
    "total_budget must be positive": {"total-budget": 0, "fidelity": "epochs=1:4"},
    "a curve must be a regular expression": {"curve": "("},
    "none.csv cannot be read": {"past-curves": "none.csv", "curve": "(.) (.)", "study": "{}/new/study.json"},
    "space.json cannot be written: Not a directory": {"report": "{}/space.json/page"},
    "is a folder": {"report": "{}"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused_before_anything_is_written(tune, refused, tmp_path, words):
    options = {name: str(value).format(tmp_path) for name, value in REFUSED[words].items()}
    options |= {"storage": f"sqlite:///{tmp_path / 'tune.db'}"} if "storage" in options else {}
    assert words in refused(*tune(options.pop("program", "echo"), "{x}", **options))
    assert [path.name for path in tmp_path.iterdir()] == ["space.json"]


def test_processes_share_the_folder_of_checkpoints(tune, refused, tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 'tune.db'}", "fidelity": "epochs=1:4"}
    line = refused(*tune("train", "{x}", "{budget}", "{checkpoint}", **options))
    assert "share its checkpoints: pass --checkpoints DIR" in line
    assert [path.name for path in tmp_path.iterdir()] == ["space.json"]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
def test_the_page_on_standard_output(tune):
    """In a pipe, between the lines that are printed before and after."""
    command = [
        sys.executable,
        "-m",
        "dre_jax",
        *map(str, tune("echo", "{x}", trials=1, report="/dev/stdout", quiet=True)),
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.match(
        r"best of 1 trials: .*<!DOCTYPE html>.*</html>\s*tune: page /dev/stdout\ntune: saved", output, re.DOTALL
    )


def test_what_is_waited_for_is_said_first(cli, tune, tmp_path, monkeypatch):
    """As after a restart of a container: the process of the running trial cannot be seen, and is silent."""
    monkeypatch.setattr(worker_identity, "LEAST_SILENCE", 1.0)
    options = {"storage": f"sqlite:///{tmp_path / 'tune.db'}"}
    assert cli(*tune("echo", "{x}", trials=1, **options))[0] == 0
    other = SharedStudy(options["storage"], "study", SPACE)
    other._worker |= {"machine": "another", "process": 17, "host": "container"}
    lost = other.ask()
    status, _, error = cli(*tune("echo", "{x}", trials=2, **options))
    first, *lines = error.splitlines()
    assert re.match(
        r"tune: 1/2 trials \(best .*\); trial 1 of process 17 on container runs again in \d+ s unless ", first
    )
    assert (status, sum(line.startswith("tune: waiting: trial 1 of ") for line in lines)) == (0, 1)
    assert [trial.state for trial in other.trials] == ["complete", "failed", "complete"]
    assert other.trials[2].params == lost.params


@pytest.mark.slow
def test_a_study_keeps_its_surrogate(cli, tune, refused, study, tmp_path):
    folder, start = tmp_path / "surrogate", ({"x": 0.25}, {"x": 0.75})
    method, facts = find("gcp").make(), {"versions": versions()}
    params = zero_params(method, 1)  # the start design needs none
    tasks = {name: Task(name, np.array([[0.0], [0.5], [1.0]]), np.arange(3.0)) for name in ("last week", "this week")}
    studies = keep_studies(SearchSpace("past", tasks), jax.random.key(0))
    learned = Surrogate(SPACE, "gcp", method, params, start, facts, "minimize", "loss", studies=studies)
    learned.save(folder)
    with_surrogate = {"surrogate": folder, "quiet": True}
    turned = tune("echo", "{x}", direction="maximize", **with_surrogate)
    assert "to minimize loss, and the study is to maximize" in refused(*turned)
    assert cli(*tune("echo", "{x}", trials=1, **with_surrogate))[0] == 0
    error = refused(*tune("echo", "{x}", trials=2))
    assert f"Surrogate.load('{folder}')" in error
    assert "--surrogate DIR or none" in error
    status, out, _ = cli(*tune("echo", "{x}", trials=2, **with_surrogate))
    assert (status, out.splitlines()[2].split()) == (0, ["past", "study", "weight", "agreement", "helped"])
    assert [line[:9] for line in out.splitlines()[3:5]] == ["last week", "this week"]
    assert [trial["x"] for trial in Optimizer.load(study, None).trials] == [0.25, 0.75]
    assert cli(*tune("echo", "{x}", trials=3, surrogate="none"))[0] == 0
    assert Optimizer.load(study).surrogate is None


def test_limits_of_a_study(cli, tune, refused, study, even_points, monkeypatch):
    """Of its time, and of what another trial is expected to gain."""
    assert "must be positive" in refused(*tune("echo", "{x}", **{"timeout-total": 0}))
    status, *_ = cli(*tune("sh", "-c", "sleep 0.2; echo {x}", trials=50, quiet=True, **{"timeout-total": 0.5}))
    assert (status, 1 <= len(Optimizer.load(study).trials) < 50) == (0, True)
    study.unlink()
    monkeypatch.setattr(Optimizer, "gain_is_below", lambda self, threshold: len(self.trials) == threshold)
    status, out, _ = cli(*tune("echo", "{x}", trials=50, quiet=True, **{"stop-when-gain-below": 6}))
    assert (status, out.splitlines()[0]) == (0, "tune: stopped, because a trial is expected to gain less than 6")
    assert len(Optimizer.load(study).trials) == 6


def test_trials_that_pause(cli, tune, refused, study, tmp_path, monkeypatch):
    """Each line says from where and until where; at the end comes the best trial of the highest budget, once it is."""
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)
    command = ("sh", "-c", "touch {checkpoint}/state; echo {x} {budget} >> {checkpoint}/log; echo {x}")
    status, out, error = cli(*tune(*command, trials=2, fidelity="epochs=1:2"))
    assert status == 0
    first, second = Optimizer.load(study).trials
    best = min(first, second, key=lambda trial: trial.value)
    folder = tmp_path / "study.json.checkpoints"
    assert out.splitlines() == [
        f"best so far of 2 trials, epochs 2: {best.value} (trial {best.number}, epochs 1 of 2)",
        json.dumps(best.params),
        f"tune: checkpoint {folder / str(best.number)}",
        f"tune: saved in {study}, picture {tmp_path / 'study.json.png'}",
    ]
    facts = error.splitlines()
    assert facts[1].startswith(f"tune: read {first.value:g} from the line ")
    assert facts[2].startswith(f"trial 0, epochs 0 to 1: {first.value:g}, paused (best {first.value:g} at epochs 1), ")
    status, out, error = cli(*tune(*command, **{"total-budget": 3}, fidelity="epochs=1:2"))
    final = Optimizer.load(study).trials[2]
    assert (status, final.state, final.resumes) == (0, "complete", best.number)
    assert out.startswith(f"best of 3 trials, epochs 3: {final.value} (trial 2, epochs 2)\n")
    assert f"tune: checkpoint {folder / str(best.number)}\n" in out
    start, _, line = error.splitlines()
    assert start == f"tune: 2 trials, epochs 2 of 3 (best {best.value:g} at epochs 1)"
    assert line.startswith(f"trial 2, epochs 1 to 2: {final.value:g} (best {final.value:g}), ")
    assert (folder / str(best.number) / "log").read_text() == f"{best['x']} 1\n{best['x']} 2\n"
    assert "with the fidelity epochs=1:2, and continues with it" in refused(*tune("echo", "{x}"))


@pytest.mark.parametrize("where", [pytest.param("file", marks=pytest.mark.thorough), "storage"])
def test_several_metrics_that_pause(cli, tune, study, tmp_path, monkeypatch, where):
    """The front is that of the highest budget, once a trial has reached it, and the folders are those of its trainings.

    Of the first two trainings, both are on the front; the trials compile nothing.
    """
    monkeypatch.setattr(next_trial, "_N_FIRST", 2)
    kept = {} if where == "file" else {"storage": str(tmp_path / "tune.log"), "seed": 0}
    folder = tmp_path / "checkpoints"
    options = {"metric": ["x", "y"], "fidelity": "epochs=1:2", "checkpoints": folder} | kept
    command = ("sh", "-c", 'touch {checkpoint}/state; echo "x: {x}"; echo "y: {x}"; echo {budget} >> {checkpoint}/log')
    directions = {"direction": ["minimize", "maximize"]}
    status, out, error = cli(*tune(*command, trials=2, **options, **directions))
    assert status == 0, error
    head, *front = out.splitlines()[:3]
    assert head == "front so far of 2 trials, epochs 2: 2"
    numbers = [int(re.search(r"\(trial (.), epochs 1 of 2\): ", line)[1]) for line in front]
    folders = [f"tune: checkpoint of trial {number} {folder / str(number)}" for number in numbers]
    assert out.splitlines()[3:5] == folders
    assert re.search(r"trial 1, epochs 0 to 1: x \S+, y \S+, paused \(front of 2 so far\), ", error)
    assert (tmp_path / "study.json.png").read_bytes().startswith(b"\x89PNG")
    status, out, error = cli(*tune(*command, **{"total-budget": 3}, **options))
    assert status == 0, error
    assert re.search(r"trial 2, epochs 1 to 2: x \S+, y \S+ \(front of 1\), ", error)
    head, line, checkpoint = out.splitlines()[:3]
    assert head == "front of 3 trials, epochs 3: 1"
    assert re.search(r"^x \S+, y \S+ \(trial 2, epochs 2\): {", line)
    assert checkpoint.startswith(f"tune: checkpoint of trial 2 {folder}")
    assert (Path(checkpoint.split()[-1]) / "log").read_text() == "1\n2\n"


def test_without_any_value(cli, tune, study):
    status, out, error = cli(*tune("sh", "-c", "echo no data {x} >&2; exit 1", trials=2, quiet=True))
    assert (status, out) == (2, "")
    (line,) = error.splitlines()
    assert line.startswith("dre-jax: a study needs a trial with a value, but none of 2 trials has one; ")
    assert "; exit status 1: no data" in line
    assert [trial.state for trial in Optimizer.load(study).trials] == ["failed", "failed"]


def test_refused(refused, tune, space):
    assert "Missing argument" in refused("tune", "--space", space)


def test_the_picture(cli, tune, study, tmp_path):
    """One that cannot be written hides nothing, and the user's own beside the study stays as it is."""
    own, picture = tmp_path / "study.png", tmp_path / "study.json.png"
    own.write_text("mine")
    picture.mkdir()
    status, out, error = cli(*tune("echo", "{x}", trials=1))
    assert status == 0
    assert out.splitlines()[0].startswith("best of 1 trials: ")
    assert f"tune: no picture: {picture} must be a regular file" in error
    assert own.read_text() == "mine"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_interrupt_as_the_keyboard_does(number):
    """Unless they are ignored, as SIGHUP is under `nohup`; afterwards all is as before."""
    own = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), signals_as_interrupts():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)
        with signals_as_interrupts():
            signal.raise_signal(number)
    finally:
        signal.signal(number, own)


@pytest.mark.multiprocess
@pytest.mark.usefixtures("interruptible")
def test_interrupted_and_resumed(cli, tune, study, tmp_path):
    """The second trial's command hangs; the interruption ends it, with what it started."""
    pids = tmp_path / "pids"
    script = f"echo $$ >> {pids}; [ {{trial}} = 0 ] || sleep 100; echo {{x}}"
    command = [sys.executable, "-m", "dre_jax", *map(str, tune("sh", "-c", script, trials=2))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: pids.exists() and pids.read_text().count("\n") == 2, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=WAIT)
    assert (process.returncode, error.splitlines()[-1]) == (130, "dre-jax: interrupted; rerun the command to resume")
    wait_until(lambda: not alive_in(int(pids.read_text().split()[1])))
    before = Optimizer.load(study).trials
    assert cli(*tune("echo", "{x}", trials=2))[0] == 0
    assert Optimizer.load(study).trials == (before[0], before[1].with_fields(state="complete", value=before[1]["x"]))
