"""Figures of the rows: medians, extrapolation, ratios, and that the page says what the file holds."""

from dataclasses import replace

import pytest

from benchmarks import compiled, page
from benchmarks.suite import environment, plan, table
from benchmarks.suite.rates import Rates
from benchmarks.suite.rows import Row, Timing, at_epochs, timing
from dre_jax.data.files import read_json

BENCH = plan.Bench(cores=2, rates=Rates(1e11, 1e10))


def some_row(name="trial-105", **given):
    best = Timing(median=0.3, low=0.2, high=0.5, compile_s=9.0)
    fields = {"ours": timing([0.2, 0.1, 0.4], 2, 5.0, "two at once"), "eager": timing([4.0]), "best": best}
    return Row(name=name, unit="trial", **{**fields, "floor_s": 0.05, **given})


def test_medians_epochs_and_ratios():
    found = timing([0.4, 0.1, 0.2], 2, 5.0)
    assert (found.median, found.low, found.high) == (0.1, 0.05, 0.2)
    assert found.compile_s == pytest.approx(4.8)
    assert timing([1.0], first=0.5).compile_s == 0.0
    line = at_epochs(timing([1.0]), timing([3.0]), 20, 100)
    assert line.median == 11.0
    assert "20 epochs timed, 100 by a straight line" in line.note
    assert at_epochs(timing([1.0]), timing([3.0]), 100, 100).note == ""
    row = some_row().as_json()
    assert (row["ratio_eager"], row["ratio_best"], row["fraction"]) == pytest.approx((40.0, 3.0, 0.5))
    assert (row["spread"], row["note"]) == ([0.05, 0.2], "ours: two at once")
    without = Row(name="memory", unit="bytes", extra={"ours_bytes": 5}).as_json()
    assert without["ratio_eager"] is without["ours_s"] is without["floor_s"] is None
    assert without["ours_bytes"] == 5
    assert [plan.between(n, (10, 30, 105), [1.0, 2.0, 9.0]) for n in (5, 30, 105)] == [0.75, 2.0, 9.0]


def about(platform="cpu"):
    numbers = {"cores": 2, "devices": 2, "matrix_flops_per_s": 2e11, "copy_bytes_per_s": 1e10, "load_before": 0.1}
    words = {
        "command": "python -m benchmarks",
        "device": "NVIDIA H200",
        "platform": platform,
        "processor": "a processor",
    }
    return {**words, **numbers, "linearity": {"eager": 1.01}, "versions": {"jax": "1"}}


def test_the_page_says_what_the_file_holds(tmp_path):
    memory = Row(name="memory-meta-train", unit="bytes", extra={"ours_bytes": 3e9, "table_bytes": 2e8})
    runs = [some_row(name, ours=timing([seconds])) for name, seconds in (("runs-1", 6.0), ("runs-50", 3.0))]
    names = ("trial-30-published", "meta-train-step-published")
    published = [some_row(name, extra={"default_s": 0.7}) for name in names]
    rows = [one.as_json() for one in (some_row(), memory, *runs, *published)]
    rows.append({**Row(name="suggest", unit="failed").as_json(), "error": "PeerError: gone"})
    loops = [{"name": "epoch", "kernels": 60, "fusions": 40, "products": 20, "loops": 0, "bytes": 5_000_000}]
    environment.write(tmp_path / "found.json", about(), rows, profile=loops)
    found = read_json(tmp_path / "found.json")
    lines = table.markdown(found["rows"], table.ROW).splitlines()
    assert lines[2].startswith("| trial-105 | 100 ms | 50.0 ms to 200 ms | 4.00 s | 300 ms | 40.0 | 3.0 |")
    assert lines[3].startswith("| memory-meta-train | 3.00 GB | - |")
    described = [{**loops[0], "least_s": compiled.least_seconds(loops[0], compiled.CHIPS["h200"])}]
    on_chip = {"copies": 7, "padded_bytes": 8e6, "temporary_bytes": 1e6, "cycles": 9000}
    loop = {**loops[0], "compile_cpu_s": 2.0, **on_chip}
    chained = {**loop, "name": "all", "chain": 4200, "factorisations": 12, "loops_inside": "7 + n x 3"}
    elsewhere = {"environment": about("described"), "rows": [], "profile": [*described, chained]}
    on_tpu = {"environment": {**about("described"), "device": "TPU v5"}, "rows": [{**loop, "least_s": 6e-6}]}
    text = page.page([found, {**found, "environment": about("gpu")}, elsewhere, on_tpu, {**on_tpu, "rows": [chained]}])
    assert text.count("## Compiled for a TPU") == 1
    for words in (
        "## On a CPU",
        "## On a GPU",
        "a history of 30 takes 100 ms: 40.0 times as fast as the published algorithm in eager PyTorch, 3.0 times",
        "step of one list takes 100 ms: 40.0 times as fast as the published algorithm",
        "With the library's own structure it takes 700 ms.",
        "40.0 times as fast as eager PyTorch of the same structure, 3.0 times as fast as the best.",
        "2.0 times better in batch",
        "`suggest`: PeerError: gone",
        "| trial-105 | AMD EPYC, 2 cores | 518 GFLOP/s | 78.7 ms | 56.5 | 5.3 | 50% |",
        "- `trial-105`, x best: 2.5 to 5.3 (4 machines)",
        "| epoch | 60 | 40 | 20 | 0 | 5 MB |",
        "took eager 3.03 times as long",
        "## Compiled for an H200, without one",
        "| epoch | 60 | 40 | 20 | 0 | 5 MB | 120 us |",
        "## Compiled for a TPU v5, without one",
        "| epoch | 2.00 s | 60 | 7 | 5 MB | 8 MB | 1 MB | 9,000 | 6.00 us |",
        "| all | 2.00 s | 1 MB | 4,200 | 12 | 7 + n x 3 |",
        "| all | 2.00 s | 1 MB | 4,200 | 12 | 9,000 | 7 + n x 3 |",
    ):
        assert words in text, words


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_ways_of_the_fast_peer_keep_all_cores_busy(preset):
    bench = replace(BENCH, fastest_ways={})
    trial, steps = (plan.PeerWork(peer="best", kind=kind, preset=preset) for kind in ("trial", "meta-train"))
    ways = bench.ways(trial)
    assert {way.processes * way.threads for way in ways} == {way.units(trial) for way in ways} == {2}
    # Half of the members each, where they have nothing in common.
    assert {way.work(steps).members for way in bench.ways(steps)} == ({5, 10} if preset == "default" else {10})
    bench.fastest_ways["trial", preset] = ways[1]
    assert bench.ways(trial) == [ways[1]]


def test_the_published_row_has_the_published_work_on_all_sides(monkeypatch):
    asked, models = [], []

    def measure(work, ways, **given):
        asked.append((work.peer, work.preset, work.history))
        return timing([8.0 if work.peer == "eager" else 2.0]), ways[0]

    def trial(model, **given):
        models.append((model.context, given["history"], given["epochs"]))
        return timing([0.5 if model.context == "shared" else 0.25])

    monkeypatch.setattr(plan.peers, "fastest", measure)
    monkeypatch.setattr(plan.ours, "trial", trial)
    for _ in range(2):
        row = plan.catalogue()["trial-30-published"](BENCH, "trial-30-published").as_json()
    assert models[:2] == [("shared", 30, 1000), ("own", 30, 1000)]
    assert asked == [("eager", "paper", 30), ("best", "paper", 30)], "a peer's trial is measured once for all rows"
    assert (row["ratio_eager"], row["ratio_best"], row["default_s"]) == (16.0, 4.0, 0.25)
