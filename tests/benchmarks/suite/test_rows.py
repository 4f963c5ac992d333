"""Times and their extrapolation, rows as JSON, the tables, and the page."""

import json

import pytest

from benchmarks import gpu_kernels, page
from benchmarks.suite import plan, table
from benchmarks.suite.rates import Rates
from benchmarks.suite.record import record, write
from benchmarks.suite.rows import Row, Timing, at_epochs, timing

KEYS = {"name", "ours_s", "eager_s", "best_s", "ratio_eager", "ratio_best", "compile_s", "floor_s", "spread"}


def some_row(**given):
    fields = {
        "name": "trial-105",
        "unit": "trial",
        "ours": timing([0.2, 0.1, 0.4], 2, 5.0, "two at once"),
        "eager": timing([4.0]),
        "best": Timing(median=0.3, low=0.2, high=0.5, compile_s=9.0),
        "floor_s": 0.05,
    }
    return Row(**{**fields, **given})


def test_medians_and_what_compiling_takes():
    found = timing([0.4, 0.1, 0.2], 2, 5.0)
    assert (found.median, found.low, found.high) == (0.1, 0.05, 0.2)
    assert found.compile_s == pytest.approx(4.8)
    assert timing([1.0], first=0.5).compile_s == 0.0


def test_epochs_on_a_straight_line():
    found = at_epochs(timing([1.0]), timing([3.0]), 20, 100)
    assert found.median == 11.0
    assert "20 epochs timed, 100 by a straight line" in found.note
    assert at_epochs(timing([1.0]), timing([3.0]), 100, 100).note == ""


def test_a_row_as_json():
    found = some_row().as_json()
    assert set(found) >= KEYS
    assert found["ratio_eager"] == pytest.approx(40.0)
    assert found["ratio_best"] == pytest.approx(3.0)
    assert found["fraction"] == pytest.approx(0.5)
    assert found["spread"] == [0.05, 0.2]
    assert found["note"] == "ours: two at once"
    without = Row(name="memory", unit="bytes", extra={"ours_bytes": 5}).as_json()
    assert {without[key] for key in KEYS - {"name"}} == {None}
    assert without["ours_bytes"] == 5


def test_failures_are_rows_too():
    def fails(bench, name):
        raise RuntimeError("no memory\nat all")

    found = record("runs-430", fails, plan.Bench(cores=2, rates=Rates(1.0, 1.0)))
    assert found["error"] == "RuntimeError: no memory"
    assert found["ours_s"] is None


def environment(platform="cpu"):
    return {
        "command": "python -m benchmarks",
        "device": "a machine",
        "platform": platform,
        "processor": "a processor",
        "cores": 2,
        "devices": 2,
        "versions": {"jax": "1"},
        "matrix_flops_per_s": 2e11,
        "copy_bytes_per_s": 1e10,
        "load_before": 0.1,
        "load_after": 2.0,
        "linearity": {"eager": 1.01},
    }


def test_files_tables_and_the_page(tmp_path):
    memory = Row(name="memory-meta-train", unit="bytes", extra={"ours_bytes": 3e9, "table_bytes": 2e8})
    runs = [some_row(name=name, ours=timing([seconds])) for name, seconds in (("runs-1", 6.0), ("runs-50", 3.0))]
    rows = [one.as_json() for one in (some_row(), memory, *runs)] + [
        {**Row(name="suggest", unit="failed").as_json(), "error": "PeerError: gone"}
    ]
    loops = [{"name": "epoch", "kernels": 60, "fusions": 40, "products": 20, "loops": 0, "bytes": 5_000_000}]
    write(tmp_path / "found.json", environment(), rows, profile=loops)
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found) == {"environment", "rows", "profile"}
    lines = table.plain(found["rows"]).splitlines()
    assert len(lines) == 6
    assert lines[1].split()[:3] == ["trial-105", "100", "ms"]
    assert "3.00 GB" in lines[2]
    elsewhere = {"environment": {**environment(), "platform": "described", "device": "NVIDIA H200"}, "rows": []}
    elsewhere["profile"] = [{**loops[0], "least_s": gpu_kernels.least_seconds(loops[0])}]
    text = page.page([found, {**found, "environment": environment("gpu")}, elsewhere])
    for words in (
        "## On a CPU",
        "## On a GPU",
        "40.0 times as fast as eager PyTorch, 3.0 times as fast as the best",
        "2.0 times better in batch",
        "`suggest`: PeerError: gone",
        "| epoch | 60 | 40 | 20 | 0 | 5 MB |",
        "took eager 3.03 times as long",
        "## Compiled for an H200, without one",
        "| epoch | 60 | 40 | 20 | 0 | 5 MB | 120 us |",
    ):
        assert words in text, words
    assert max(len(line) for line in text.splitlines() if not line.startswith(("|", "-"))) < 200


def test_rows_are_chosen_by_name():
    rows = plan.catalogue()
    assert {
        "trial-10",
        "trial-30",
        "trial-105",
        "meta-train-step-1",
        "meta-train-step-16",
        "meta-train-step-100",
    } <= set(rows)
    assert {"runs-1", "runs-10", "runs-50", "runs-430", "members-50", "columns-64", "spaces-4"} <= set(rows)
    assert {"trial-105", "meta-train-step-1"} <= set(plan.QUICK) <= set(rows)
    assert [name for name, _ in plan.chosen(False, ["runs-10"])] == ["runs-10"]
    with pytest.raises(ValueError, match="but got runs-11"):
        plan.chosen(False, ["runs-11"])


def test_between_points():
    assert plan.between(5, (10, 30, 105), [1.0, 2.0, 9.0]) == 0.75
    assert plan.between(30, (10, 30, 105), [1.0, 2.0, 9.0]) == 2.0
    assert plan.between(105, (10, 30, 105), [1.0, 2.0, 9.0]) == 9.0


def test_ways_of_the_fast_peer_to_use_the_cores():
    bench = plan.Bench(cores=2, rates=Rates(1.0, 1.0))
    ways = bench.ways("trial")
    assert {way.processes * way.threads for way in ways} == {2}
    assert {way.units(plan.Work(peer="best", kind="trial")) for way in ways} == {2}
    assert any(way.split_members for way in bench.ways("meta-train"))
    shared = next(way for way in bench.ways("meta-train") if way.split_members)
    assert shared.work(plan.Work(peer="best", kind="meta-train")).members == 5
    bench.won["trial"] = ways[1]
    assert bench.ways("trial") == [ways[1]]
