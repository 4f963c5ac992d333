"""Figures of the rows: medians, extrapolation, ratios, and their table."""

from dataclasses import replace

import pytest

from benchmarks.suite import plan, table
from benchmarks.suite.rates import Rates
from benchmarks.suite.rows import Row, Timing, at_epochs, timing

BENCH = plan.Bench(cores=2, rates=Rates(1e11, 1e10))


def some_row(name="trial-105", **given):
    best = Timing(median=0.3, low=0.2, high=0.5, compile_s=9.0)
    fields = {"ours": timing([0.2, 0.1, 0.4], 2, 5.0, "two at once"), "eager": timing([4.0]), "best": best}
    return Row(name=name, unit="trial", **{**fields, "floor_s": 0.05, **given})


def test_medians_epochs_and_ratios():
    result = timing([0.4, 0.1, 0.2], 2, 5.0)
    assert (result.median, result.low, result.high) == (0.1, 0.05, 0.2)
    assert result.compile_s == pytest.approx(4.8)
    assert timing([1.0], first=0.5).compile_s == 0.0
    line = at_epochs(timing([1.0]), timing([3.0]), 20, 100)
    assert line.median == 11.0
    assert "20 epochs timed, 100 by a straight line" in line.note
    assert at_epochs(timing([1.0]), timing([3.0]), 100, 100).note == ""
    row = some_row().as_json()
    assert (row["ratio_eager"], row["ratio_best"], row["fraction"]) == pytest.approx((40.0, 3.0, 0.5))
    assert (row["spread"], row["note"]) == ([0.05, 0.2], "ours: two at once")
    cells = "| trial-105 | 100 ms | 50.0 ms to 200 ms | 4.00 s | 300 ms | 40.0 | 3.0 | 50.0 ms | 50% | 4.80 s |"
    assert table.markdown([row], table.ROW).splitlines()[2] == cells
    without = Row(name="failed", unit="none").as_json()
    assert without["ratio_eager"] is without["ours_s"] is without["floor_s"] is None
    assert [plan.between(n, (10, 30, 105), [1.0, 2.0, 9.0]) for n in (5, 30, 105)] == [0.75, 2.0, 9.0]


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
    calls, models = [], []

    def measure(work, ways, **given):
        calls.append((work.peer, work.preset, work.history))
        return timing([8.0 if work.peer == "eager" else 2.0]), ways[0]

    def trial(model, **given):
        models.append((model.context, given["history"], given["epochs"]))
        return timing([0.5 if model.context == "shared" else 0.25])

    monkeypatch.setattr(plan.peers, "fastest", measure)
    monkeypatch.setattr(plan.ours, "trial", trial)
    for _ in range(2):
        row = plan.catalogue()["trial-30-published"](BENCH, "trial-30-published").as_json()
    assert models[:2] == [("shared", 30, 1000), ("own", 30, 1000)]
    assert calls == [("eager", "paper", 30), ("best", "paper", 30)], "a peer's trial is measured once for all rows"
    assert (row["ratio_eager"], row["ratio_best"], row["default_s"]) == (16.0, 4.0, 0.25)
