"""The benchmark's rows, its command, and the work that the peers do in processes of their own."""

import jax
import pytest

from benchmarks import __main__ as command
from benchmarks import ask
from benchmarks.suite import floors, hpob_shapes, ours, peer_timing, plan
from benchmarks.suite.floors import Rates
from benchmarks.suite.peer_work import PeerWork, Way
from benchmarks.suite.rows import Row, Timing, at_epochs, markdown, timing
from dre_jax.data.files import read_json


@pytest.fixture(autouse=True)
def small_rates(monkeypatch):
    monkeypatch.setattr(floors, "peak_rates", lambda cores: Rates(1e11, 1e10))
    # What the command sets is for a process of its own: here it ends with the test.
    before = jax.config.jax_enable_compilation_cache
    yield
    jax.config.update("jax_enable_compilation_cache", before)


def test_medians_epochs_and_ratios():
    ours = timing([0.2, 0.1, 0.4], 2, 5.0, "two at once")
    assert (ours.median, ours.low, ours.high, ours.compile_s) == (0.1, 0.05, 0.2, pytest.approx(4.8))
    assert timing([1.0], first=0.5).compile_s == 0.0
    line = at_epochs(timing([1.0]), timing([3.0]), 20, 100)
    assert (line.median, line.note) == (11.0, "20 epochs timed, 100 by a straight line")
    best = Timing(median=0.3, low=0.2, high=0.5, compile_s=9.0)
    row = Row(name="trial-105", unit="trial", ours=ours, eager=timing([4.0]), best=best, floor_s=0.05).as_json()
    assert (row["ratio_eager"], row["ratio_best"], row["fraction"]) == pytest.approx((40.0, 3.0, 0.5))
    assert row["note"] == "ours: two at once"
    cells = "| trial-105 | 100 ms | 50.0 ms to 200 ms | 4.00 s | 300 ms | 40.0 | 3.0 | 50.0 ms | 50% | 4.80 s |"
    without = "| failed | - | - | - | - | - | - | - | - | - |"
    assert markdown([row, Row(name="failed", unit="none").as_json()]).splitlines()[2:] == [cells, without]


def test_the_published_row_has_the_published_work_on_all_sides(monkeypatch):
    calls, runs = [], []

    def fastest(work, ways, **options):
        calls.append((work.peer, work.preset, work.history))
        return timing([8.0 if work.peer == "eager" else 2.0]), ways[0]

    def run_tasks(method, params, tasks, designs, *, n_trials, **_):
        (history,) = {len(rows) for seeds in designs.values() for rows in seeds.values()}
        runs.append((method.model.context, history, method.fine_tuning.epochs, n_trials))
        assert {task.n_rows for task in tasks.values()} == {history + 300}
        return iter(())

    monkeypatch.setattr(peer_timing, "fastest", fastest)
    monkeypatch.setattr(ours, "run_tasks", run_tasks)
    bench = plan.Bench(cores=2, rates=Rates(1e11, 1e10), repeats=1)
    for _ in range(2):
        row = plan.catalogue()["trial-30-published"](bench, "trial-30-published").as_json()
    assert runs == [*[("shared", 30, 1000, 1)] * 2, *[("own", 30, 1000, 1)] * 2] * 2
    assert calls == [("eager", "paper", 30), ("best", "paper", 30)], "a peer's trial is measured once for all rows"
    assert row["ratio_eager"] == pytest.approx(4 * row["ratio_best"])


@pytest.mark.multiprocess
@pytest.mark.parametrize(
    ("peer", "kind", "preset"),
    [("eager", "trial", "paper"), ("best", "trial", "default"), ("best", "meta-train", "paper")],
)
def test_peers(peer, kind, preset):
    pytest.importorskip("torch", reason="torch is not installed")
    work = PeerWork(peer=peer, kind=kind, columns=3, members=2, history=12, candidates=20, preset=preset)
    result = peer_timing.measure(work, Way(processes=1, threads=1), part=2, whole=4, repeats=1)
    assert result.median > 0
    assert "one process of 1 threads" in result.note


def test_the_command(tmp_path, monkeypatch, capsys):
    def row(bench, name):
        return Row(name=name, unit="second", ours=timing([1.0 * bench.repeats], first=2.0), floor_s=0.5)

    def fails(bench, name):
        raise RuntimeError("no memory\nat all")

    monkeypatch.setattr(plan, "catalogue", lambda: {"one": row, "fails": fails, "two": row})
    out = tmp_path / "found.json"
    assert command.main(["--only", "two", "--repeats", "3", "--out", str(out)]) == 0
    result = read_json(out)
    assert [line["name"] for line in result["rows"]] == ["two"]
    assert result["environment"]["command"] == "python -m benchmarks --only two --repeats 3 --out found.json"
    assert result["environment"]["packages"]["jax"] == jax.__version__
    assert "| two | 3.00 s |" in capsys.readouterr().out
    # A row that fails says why, and those after it are measured nevertheless.
    assert command.main(["--out", str(out)]) == 1
    results = [(line["name"], line["ours_s"], line.get("error")) for line in read_json(out)["rows"]]
    assert results == [("one", 5.0, None), ("fails", None, "RuntimeError: no memory"), ("two", 5.0, None)]


def test_shapes_of_hpob_against_its_files(shared_data):
    folder = shared_data / "hpob-traces"
    columns, tasks = (
        read_json(folder / f"meta-{name}.json") for name in ("dataset-descriptors", "test-tasks-per-space")
    )
    for space in hpob_shapes.SPACES:
        assert space.columns == len(columns[space.name]["variables_order"])
        assert space.test_tasks == len(tasks[space.name])
        assert space.rows_per_task > 105, "a run of 100 trials would see the whole table"
    assert hpob_shapes.DESIGNS * sum(space.test_tasks for space in hpob_shapes.SPACES) == 430


@pytest.mark.thorough
def test_a_process_reports_its_suggestion(tmp_path):
    seconds, later = ask.child(ask.Path(), 0, tmp_path)
    assert 0 < seconds < 600
    assert later == []
