"""The benchmark measures: small work of ours, of a peer in its process, and the accelerator's suite in miniature."""

import jax
import pytest

from benchmarks import __main__ as command
from benchmarks import accelerator
from benchmarks.suite import ours, peers, plan
from benchmarks.suite.peer_work import PeerWork
from benchmarks.suite.peers import Way
from benchmarks.suite.rates import Rates
from dre_jax import native
from dre_jax.data.files import read_json
from dre_jax.methods.dre.model_config import ModelConfig

MODEL = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))


@pytest.fixture(autouse=True)
def small_rates(monkeypatch):
    from benchmarks.suite import rates

    monkeypatch.setattr(rates, "measure", lambda cores: Rates(1e11, 1e10))
    # What the commands set is for processes of their own: here it ends with the test.
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "false")
    monkeypatch.setenv("DRE_JAX_NATIVE", "1")


def test_a_trial_is_made_at_the_history_that_is_asked_for(monkeypatch):
    def note(method, params, tasks, designs, *, n_trials, **_):
        assert n_trials == 1
        assert {len(rows) for seeds in designs.values() for rows in seeds.values()} == {30}
        assert {task.n_rows for task in tasks.values()} == {330}
        return iter(())

    monkeypatch.setattr(ours, "run_tasks", note)
    ours.trial(MODEL, history=30, candidates=300, columns=3, epochs=2, repeats=1, runs=2)


def test_long_runs_are_told_from_few_epochs(monkeypatch):
    monkeypatch.setattr(ours, "whole_runs", lambda *_, epochs, **__: (3.0, [2.0 + 0.1 * epochs]))
    for most_s, note in ((50.0, "20 and 40 epochs timed, 1000 by a straight line"), (5e3, "")):
        result = ours.runs(MODEL, count=2, candidates=9, columns=3, trials=2, epochs=1000, most_s=most_s)
        assert (result.median, result.note) == (pytest.approx(51.0), note)


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    ("peer", "kind", "preset"),
    [("eager", "trial", "paper"), ("best", "trial", "default"), ("best", "meta-train", "paper")],
)
def test_peers(peer, kind, preset):
    pytest.importorskip("torch", reason="torch is not installed")
    work = PeerWork(peer=peer, kind=kind, columns=3, members=2, history=12, candidates=20, preset=preset)
    result, peak = peers.measure(work, Way(processes=1, threads=1), part=2, whole=4, repeats=1)
    assert result.median > 0
    assert peak > 1e7
    assert "one process of 1 threads" in result.note


@pytest.mark.multiprocess
def test_a_peer_that_fails_says_so():
    work = PeerWork(peer="best", kind="trial", columns=-3)
    with pytest.raises(peers.PeerError, match="a peer's process must answer, but it failed: "):
        peers.measure(work, Way(processes=1, threads=1), part=1, whole=1, repeats=1)


def test_the_command(tmp_path, monkeypatch, capsys):
    def row(bench, name):
        assert bench.cores >= 1
        return plan.Row(name=name, unit="second", ours=plan.timing([1.0], first=2.0), floor_s=0.5)

    def fails(bench, name):
        raise RuntimeError("no memory\nat all")

    monkeypatch.setattr(plan, "catalogue", lambda: {"one": row, "fails": fails, "two": row})
    out = tmp_path / "found.json"
    assert command.main(["--only", "two", "--out", str(out)]) == 0
    result = read_json(out)
    assert [line["name"] for line in result["rows"]] == ["two"]
    assert result["environment"]["command"] == "python -m benchmarks --only two --out found.json"
    assert result["environment"]["versions"]["jax"] == jax.__version__
    assert "| two | 1.00 s |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--only", "three"])
    assert "invalid choice: 'three'" in capsys.readouterr().err
    # A row that fails says why, and those after it are measured nevertheless.
    assert command.main(["--out", str(out)]) == 1
    results = [(line["name"], line["ours_s"], line.get("error")) for line in read_json(out)["rows"]]
    assert results == [("one", 1.0, None), ("fails", None, "RuntimeError: no memory"), ("two", 1.0, None)]


@pytest.mark.slow
@pytest.mark.thorough
def test_the_accelerator_suite_in_miniature(tmp_path, monkeypatch):
    monkeypatch.setattr(accelerator, "SMALL_ROWS", ("trial-10",))
    monkeypatch.setattr(ours, "default_model", lambda members=2: MODEL)
    monkeypatch.setattr(native, "available", lambda: False)  # the command's switch comes too late for this process
    monkeypatch.setattr(accelerator, "peer_device", lambda small: None)
    out = tmp_path / "found.json"
    assert accelerator.main(["--small", "--out", str(out)]) == 0
    result = read_json(out)
    names = [row["name"] for row in result["rows"]]
    assert names == ["same-as-cpu", "hpob-430-runs", "meta-train-500000", "trial-10"]
    assert result["rows"][0]["equal"] == {"gp": 1.0, "dre": 1.0}
    assert result["rows"][1]["runs"] == 20
    assert result["rows"][1]["compile_s"] > 0
    assert all(row["ours_s"] > 0 and row["eager_s"] is None for row in result["rows"])
