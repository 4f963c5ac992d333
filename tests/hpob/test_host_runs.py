"""Host methods in an evaluation: the same result file, and a fault ends one run."""

import multiprocessing
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dre_jax.data import bundled, read_results
from dre_jax.errors import ConfigError, MethodError
from dre_jax.hpob import Evaluation, Plan, run_hpob
from dre_jax.search.host import run_host
from tests.processes import wait_until

PEER = """
import os, random, time
import numpy as np

class Peer:
    '''Draws from both generators that such classes draw from, and does worse on the tables that a variable names by
    their first entry. A fresh object never knows of another run.'''
    def __init__(self, does="draw", width: int = 3):
        assert width == 3
        self.does, self.asked = does, 0

    def observe_and_suggest(self, X_obs, y_obs, X_pen=None):
        assert len(X_obs) == 5 + self.asked
        self.asked += 1
        if y_obs[0, 0] > float(os.environ.get("PEER_FAILS", "inf")):
            if self.does == "raise":
                raise RuntimeError("no such\\nluck")
            if self.does == "die" and os.environ["OMP_NUM_THREADS"] == "1":  # a worker's process, not the tests'
                os.kill(os.getpid(), 9)
        if self.does == "sleep":
            time.sleep(0.2)
        return (random.randrange(len(X_pen)) + np.random.randint(len(X_pen))) % len(X_pen)

class Described(Peer):
    def __repr__(self):
        return "Described(beta=2)"
"""


@pytest.fixture
def plan(tmp_path):
    """A plan of a class above: `plan(does="raise", workers=2)`."""
    path = tmp_path / "peer.py"
    path.write_text(PEER)

    def make(name="Peer", does=None, **changes):
        inputs = {"data": bundled.path(), "spaces": ("svm",), "trials": 6, "seeds": ("test0", "test1")}
        settings = {} if does is None else {"does": does}
        return Plan(**inputs | {"method": f"{path}:{name}", "settings": settings} | changes)

    return make


def test_the_result_file(plan, tmp_path, content):
    class Local:
        def observe_and_suggest(self, X_obs, y_obs, X_pen):
            return 0

    results = run_hpob(Local, bundled.path(), tmp_path / "local.json", spaces=["svm"], trials=3, seeds=["test2"])
    space = bundled.load("svm")
    runs = list(results.runs())
    assert len(runs) == len(space.test)
    for _, dataset, seed, trace in runs:
        task = space.test[dataset]
        expected = run_host(Local(), task.X, task.y, space.designs[dataset][seed], 3)
        np.testing.assert_array_equal(trace, expected)
    assert results.meta["method"].endswith("Local")
    assert results.meta["protocol"]["method"] == "host method, observe_and_suggest"
    assert results.meta["protocol"]["benchmark"] == "HPO-B v3, discrete"
    # The words of an object, if it has any; else what it was made with.
    for name, settings, words in (
        ("Described", {}, "Described(beta=2)"),
        ("Peer", {}, None),
        ("Peer", {"width": "3"}, "peer.py:Peer(width=3)"),
    ):
        out = tmp_path / f"{name}-{len(settings)}.json"
        next(iter(Evaluation(plan(name, settings=settings), out)))
        meta = content(out)["_meta"]
        assert (meta["method"], meta["configuration"]) == (f"peer.py:{name}", words)
        assert "failed" not in meta


def test_an_error_ends_one_run_which_runs_again(plan, tmp_path, monkeypatch, content):
    out, whole = tmp_path / "out.json", tmp_path / "whole.json"
    faulty, other = plan(does="raise"), tmp_path / "other.json"
    list(Evaluation(faulty, whole))
    list(Evaluation(plan(does="raise", seed=1), other))
    assert content(other)["svm"] != content(whole)["svm"]
    monkeypatch.setenv("PEER_FAILS", "0.5")
    evaluation = Evaluation(faulty, out)
    finished = list(evaluation)
    assert evaluation.failed
    assert finished
    assert len(finished) + len(evaluation.failed) == evaluation.total
    first = evaluation.failed[0]
    assert str(first).endswith("method peer.py:Peer: RuntimeError: no such luck")
    assert f"dataset {first.dataset!r}, seed {first.seed!r}" in str(first)
    noted = content(out)["_meta"]["failed"]
    assert [tuple(run.values()) for run in noted] == [tuple(run) for run in evaluation.failed]
    # What failed is not there, and the reader of the file is told nothing else.
    assert len(list(read_results(out).runs())) == len(finished)
    same = {"spaces": ["svm"], "trials": 6, "seeds": faulty.seeds, "settings": faulty.settings}
    with pytest.raises(MethodError, match="runs failed and are not in"):
        run_hpob(faulty.method, faulty.data, out, **same)
    monkeypatch.delenv("PEER_FAILS")
    assert len(list(Evaluation(faulty, out))) == len(evaluation.failed)
    assert content(out) == content(whole)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"settings": {"epochs": 3}}, "peer.py:Peer takes does, width, but got 'epochs'"),
        ({"checkpoints": Path()}, "a host method reads no checkpoints"),
        ({"method": "rf", "continuous": "fixed", "surrogates": Path()}, "rf does not support --continuous"),
        ({"workers": 0}, "workers must be at least 1, but got 0"),
        ({"method": 3}, "a method must be a name, a class"),
    ],
)
def test_refused_at_once(plan, tmp_path, monkeypatch, changed, message):
    monkeypatch.chdir("/")
    with pytest.raises(ConfigError, match=message):
        Evaluation(plan(**changed), tmp_path / "out.json")


def command(plan, out):
    own_plan, options = plan(), ["--space", "svm", "--trials", "6", "--seeds", "test0", "--quiet", "--workers", "1"]
    return ["evaluate", "--data", str(own_plan.data), "--method", own_plan.method, "--out", str(out), *options]


@pytest.mark.multiprocess
def test_workers_change_nothing(plan, tmp_path, monkeypatch, content):
    monkeypatch.setenv("PEER_FAILS", "0.5")
    result, failed = [], []
    for workers in (1, 2):
        out = tmp_path / f"{workers}.json"
        evaluation = Evaluation(plan(does="raise", workers=workers), out)
        for _ in evaluation:
            assert len(multiprocessing.active_children()) <= (0 if workers == 1 else 2)
        failed.append(sorted(map(str, evaluation.failed)))
        result.append(content(out))
        result[-1]["_meta"]["failed"].sort(key=str)
    assert multiprocessing.active_children() == []
    assert failed[0] == failed[1]
    assert failed[0][0].endswith("method peer.py:Peer: RuntimeError: no such luck")
    assert result[0] == result[1]


def test_local_classes_run_in_this_process(plan, tmp_path):
    class Local:
        def observe_and_suggest(self, X_obs, y_obs, X_pen):
            here.append(0)
            return 0

    here = []
    list(Evaluation(plan(method=Local, workers=2), tmp_path / "local.json"))
    assert len(here) > 20
    # Nor is a process started for a single run.
    assert len(list(islice(Evaluation(plan(seeds=("test0",)), tmp_path / "one.json"), 9))) == 9
    for _ in Evaluation(plan(workers=2, seeds=("test0",)), tmp_path / "one.json"):
        assert multiprocessing.active_children() == []


def test_a_registered_method(plan, tmp_path):
    out = tmp_path / "rf.json"
    run = next(iter(Evaluation(plan(method="rf", trials=3, settings={"trees": "4"}), out)))
    assert len(run.trace) == 4
    meta = read_results(out).meta
    assert meta["method"] == "rf"
    assert meta["protocol"]["method"] == "host method, observe_and_suggest"
    assert meta["configuration"].startswith("RandomForest(trees=4, ")
    assert meta["versions"]["scikit-learn"]


@pytest.mark.thorough
@pytest.mark.multiprocess
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_interrupted_on_the_command_line(plan, tmp_path, workers):
    out = tmp_path / "out.json"
    arguments = [sys.executable, "-m", "dre_jax", *command(plan, out)[:-1], workers, "--set", "does=sleep"]
    # A terminal interrupts all processes of a command.
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until(out.exists, process)
        os.killpg(process.pid, signal.SIGINT)
        output = process.stderr.read()  # until the last process that holds it has ended
    assert process.returncode == 130
    assert output == "dre-jax: interrupted; rerun the command to resume\n"
    assert 1 <= len(list(read_results(out).runs())) < 10
