"""Which rows there are, and how each is measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from benchmarks.suite import children, floors, ours, peers
from benchmarks.suite.peers import Peer, PeerError, Way, Work
from benchmarks.suite.rates import Rates
from benchmarks.suite.rows import Row, Timing, timing
from dre_jax.model import ModelConfig, preset
from dre_jax.training import FineTuneConfig

EPOCHS, TRIALS, COLUMNS, CANDIDATES = 1000, 100, 16, 300
N_SUPPORT, N_QUERY = 20, 100
HISTORIES = (105, 30, 10)
QUICK = ("trial-105", "meta-train-step-1", "trial-105-published", "meta-train-step-published", "suggest")
"""Rows of ``--quick``."""
_TRIAL = "trial of a run, all cores busy with runs"
_PUBLISHED = (
    "one deep set for all members and the same lists, as published; eager with the published code's decisions, ours "
    "and best with an exact loss"
)


@dataclass
class Bench:
    """What the rows share."""

    cores: int
    rates: Rates
    quick: bool = False
    device: str | None = "cpu"
    """Of the peers; None leaves them out."""
    epochs: int = EPOCHS
    repeats: int = 5
    eager_epochs: int = 20
    best_epochs: int = 500
    patience: float = 300.0
    """Seconds that the runs of a row may take; longer ones are extrapolated."""
    side_by_side: int | None = None
    """Runs at once; one a core by default."""
    won: dict[tuple[str, str], Way] = field(default_factory=dict)
    """The fast peer's fastest way, by kind of work and structure, once all were tried."""
    known: dict[Work, Timing | None] = field(default_factory=dict)
    """Peers' trials that were measured."""

    @property
    def runs(self) -> int:
        """Runs at once."""
        return self.side_by_side or self.cores

    def ways(self, work: Work) -> list[Way]:
        """Ways of the fast peer to try."""
        if (work.kind, work.preset) in self.won:
            return [self.won[work.kind, work.preset]]
        if self.device != "cpu":
            return [Way(processes=1, threads=1, compiled=c, runs=self.runs) for c in (True, False)]
        # Members that share a deep set cannot be shared out among processes.
        split = work.kind != "trial" and work.preset == "default"
        own = [Way(processes=self.cores, threads=1, compiled=c, split_members=split) for c in (True, False)]
        if work.kind == "trial":
            together = [Way(processes=1, threads=self.cores, compiled=True, runs=self.runs)]
            return own if self.quick else own + together
        together = [Way(processes=1, threads=t, compiled=c) for t in {1, self.cores} for c in (True, False)]
        apart = own if split else []
        return [*apart[:1], *together[:1]] if self.quick else apart + together

    def eager_way(self, kind: str) -> Way:
        """The plain peer: a process a core, each with runs of its own; training uses all threads of one process."""
        if self.device != "cpu":
            return Way(processes=1, threads=1)
        return Way(processes=self.cores if kind == "trial" else 1, threads=1)

    def peer(self, peer: Peer, **given: Any) -> Timing | None:
        """A peer's time of some work, measured once; None where there are no peers."""
        work = Work(peer=peer, device=self.device or "cpu", **given)
        if self.device is not None and work not in self.known:
            self.known[work] = best_time(self, work) if peer == "best" else eager_time(self, work)
        return self.known.get(work)

    def both(self, **given: Any) -> dict[str, Timing | None]:
        """Both peers' times, as a row has them."""
        return {"eager": self.peer("eager", **given), "best": self.peer("best", **given)}


def best_time(bench: Bench, work: Work) -> Timing:
    """The fast peer's time, in its fastest way; the ways are tried once for each kind of work."""
    part = min(bench.best_epochs, bench.epochs) if work.kind == "trial" else max(50, 400 // work.lists)
    if bench.quick and work.kind == "trial":
        part = min(part, 200)
    found, way = peers.fastest(work, bench.ways(work), part=part, whole=bench.epochs, repeats=max(2, bench.repeats))
    bench.won.setdefault((work.kind, work.preset), way)
    return found


def eager_time(bench: Bench, work: Work) -> Timing:
    """The plain peer's time; steps of meta-training with one thread or with all, whichever is faster."""
    part = min(bench.eager_epochs, bench.epochs) if work.kind == "trial" else max(2, 20 // work.lists)
    ways = [bench.eager_way(work.kind)]
    if work.kind != "trial" and bench.device == "cpu":
        ways.append(replace(ways[0], threads=bench.cores))
    return peers.fastest(work, ways, part=part, whole=bench.epochs, repeats=2 if bench.quick else 3)[0]


def our_trial(bench: Bench, model: ModelConfig, **given: Any) -> Timing:
    """Of one run among as many as there are cores."""
    sizes = {"history": 105, "candidates": CANDIDATES, "columns": COLUMNS, "epochs": bench.epochs, **given}
    return ours.trial(model, repeats=bench.repeats, runs=bench.runs, **sizes)


def trial_row(
    bench: Bench,
    name: str,
    *,
    history: int = 105,
    candidates: int = CANDIDATES,
    columns: int = COLUMNS,
    members: int = 10,
    epochs: int | None = None,
) -> Row:
    """A trial of one run among as many as there are cores; `epochs` are ours, where the peers have more."""
    model, epochs = ours.default_model(members), min(epochs or bench.epochs, bench.epochs)
    sizes = {"history": history, "candidates": candidates, "columns": columns}
    floor = floors.trial(model, columns, history, candidates, epochs)
    fewer = f"ours: {epochs} epochs, the default; peers: {bench.epochs}; docs/defaults.md has the regrets of both"
    return Row(
        name=name,
        unit=_TRIAL,
        ours=our_trial(bench, model, epochs=epochs, **sizes),
        **bench.both(kind="trial", members=members, **sizes),
        floor_s=floor.seconds(*bench.rates),
        notes=() if epochs == bench.epochs else (fewer,),
        extra={"flops": floor.flops, "members": members, **sizes},
    )


def published_trial_row(bench: Bench, name: str, *, history: int) -> Row:
    """The published structure on all sides, and beside it the library's own."""
    model = preset("paper")
    return Row(
        name=name,
        unit=_TRIAL,
        ours=our_trial(bench, model, history=history),
        **bench.both(kind="trial", history=history, preset="paper"),
        floor_s=floors.trial(model, COLUMNS, history, CANDIDATES, bench.epochs).seconds(*bench.rates),
        notes=(_PUBLISHED,),
        extra={"default_s": our_trial(bench, ours.default_model(), history=history).median},
    )


def meta_row(bench: Bench, name: str, *, lists: int) -> Row:
    """A step of meta-training, members with lists of their own."""
    model = ours.default_model()
    work = floors.step(model, COLUMNS, N_SUPPORT, N_QUERY, lists=lists)
    return Row(
        name=name,
        unit="step",
        ours=ours.meta_step(model, lists=lists, columns=COLUMNS, repeats=bench.repeats),
        **bench.both(kind="meta-train", lists=lists),
        floor_s=work.seconds(*bench.rates),
        notes=(),
        extra={"flops": work.flops, "bytes": work.bytes, "state_bytes": floors.state_bytes(model, COLUMNS)},
    )


def published_meta_row(bench: Bench, name: str) -> Row:
    """A step of meta-training as published, one list for all members, and beside it the library's own."""
    model = preset("paper")
    given: dict[str, Any] = {"lists": 1, "columns": COLUMNS, "repeats": bench.repeats}
    return Row(
        name=name,
        unit="step",
        ours=ours.meta_step(model, own_lists=False, **given),
        **bench.both(kind="meta-train", preset="paper"),
        floor_s=floors.step(model, COLUMNS, N_SUPPORT, N_QUERY).seconds(*bench.rates),
        notes=(_PUBLISHED,),
        extra={"default_s": ours.meta_step(ours.default_model(), **given).median},
    )


def run_row(bench: Bench, name: str, *, count: int) -> Row:
    """Whole runs of 100 trials."""
    model, measured = ours.default_model(), min(count, 50)
    mine = ours.runs(
        model,
        count=measured,
        candidates=CANDIDATES,
        columns=COLUMNS,
        trials=TRIALS,
        epochs=bench.epochs,
        patience=bench.patience,
    )
    notes = [] if measured == count else [f"ours is that of {measured} runs: time goes with the number of runs"]
    notes.append("peers: trials at history 10, 30 and 105, straight lines between them, summed up")
    notes += ["one run leaves the other cores idle, peers' do not"] * (count == 1)
    work = floors.run(model, COLUMNS, ours.DESIGN, TRIALS, CANDIDATES, bench.epochs)
    return Row(
        name=name,
        unit="run of 100 trials",
        ours=mine,
        eager=_peer_run(bench, "eager"),
        best=_peer_run(bench, "best"),
        floor_s=work.seconds(*bench.rates),
        notes=tuple(notes),
        extra={"flops": work.flops, "runs": count},
    )


def _peer_run(bench: Bench, peer: Peer) -> Timing | None:
    """The sum of a peer's trials over a run."""
    at = tuple(sorted(HISTORIES))
    found = [bench.peer(peer, kind="trial", history=n) for n in at]
    points = [one.median for one in found if one is not None]
    histories = range(ours.DESIGN, ours.DESIGN + TRIALS)
    return timing([sum(between(n, at, points) for n in histories)]) if len(points) == len(at) else None


def between(n: float, at: tuple[int, ...], values: list[float]) -> float:
    """On straight lines between points; beyond them on the nearest line.

    Example:
      >>> between(20, (10, 30), [1.0, 3.0]), between(40, (10, 30), [1.0, 3.0])
      (2.0, 4.0)
    """
    i = next((i for i in range(1, len(at) - 1) if n <= at[i]), len(at) - 1)
    share = (n - at[i - 1]) / (at[i] - at[i - 1])
    return max(0.0, values[i - 1] + share * (values[i] - values[i - 1]))


def suggest_row(bench: Bench, name: str) -> Row:
    """One call of `Suggester.observe_and_suggest`, warm; the first takes its compile time more."""
    model, sizes = ours.default_model(), {"history": 30, "candidates": CANDIDATES, "columns": COLUMNS}
    mine = ours.suggestion(model, epochs=bench.epochs, repeats=bench.repeats, **sizes)
    alone: dict[str, Timing | None] = {}
    pair: tuple[Peer, Peer] = ("eager", "best")
    for peer in pair if bench.device else ():
        work = Work(peer=peer, kind="trial", device=bench.device or "cpu", history=30)
        part = min(bench.eager_epochs if peer == "eager" else 200, bench.epochs)
        way = Way(processes=1, threads=1, compiled=peer == "best")
        alone[peer] = peers.measure(work, way, part=part, whole=bench.epochs, repeats=2)[0]
    return Row(
        name=name,
        unit="call, warm",
        ours=mine,
        **alone,
        floor_s=floors.trial(model, COLUMNS, 30, CANDIDATES, bench.epochs).seconds(*bench.rates),
        notes=("history 30; one run alone",),
        extra={"first_s": mine.median + (mine.compile_s or 0.0)},
    )


def spaces_row(bench: Bench, name: str, *, count: int) -> Row:
    """Search spaces meta-trained side by side, a process each; the cores are shared out among them."""
    given = [
        {"core": core, "columns": COLUMNS, "repeats": bench.repeats} for core in children.shares(count, bench.cores)
    ]
    slowest = max(children.side_by_side(children.steps_on, given), key=lambda one: one.median)
    return Row(
        name=name,
        unit="step of one space",
        ours=Timing(median=slowest.median / count, low=slowest.low / count, high=slowest.high / count),
        floor_s=floors.step(ours.default_model(), COLUMNS, N_SUPPORT, N_QUERY).seconds(*bench.rates),
        notes=(f"{count} processes, each with {max(1, bench.cores // count)} of {bench.cores} cores",),
    )


def memory_trial_row(bench: Bench, name: str) -> Row:
    """Peak memory of a process that makes trials at 30,000 candidates."""
    sizes: dict[str, Any] = {"history": 105, "candidates": 30_000, "columns": COLUMNS}
    peak, idle = children.side_by_side(
        children.peak_of, [{"what": "trial", "epochs": 50, "runs": bench.runs, **sizes}]
    )[0]
    extra = {"ours_bytes": peak, "idle_bytes": idle}
    pair: tuple[tuple[Peer, int], ...] = (("eager", 2), ("best", 50))
    for peer, part in pair if bench.device else ():
        work, way = Work(peer=peer, kind="trial", **sizes), Way(processes=1, threads=1)
        extra[f"{peer}_bytes"] = peers.measure(work, way, part=part, whole=part, repeats=1)[1]
    notes = (f"bytes, no seconds; ours with {bench.runs} runs in one process, peers with one run",)
    return Row(name=name, unit="peak bytes of a process", notes=notes, extra=extra)


def memory_meta_row(bench: Bench, name: str) -> Row:
    """Peak memory of meta-training on three million rows."""
    sizes = {"tasks": 50, "rows": 60_000, "columns": COLUMNS}
    ((peak, idle),) = children.side_by_side(children.peak_of, [{"what": "meta_step", "lists": 1, **sizes}])
    table = 4 * 50 * 60_000 * (COLUMNS + 2)
    extra = {"ours_bytes": peak, "idle_bytes": idle, "table_bytes": table, "over_table_bytes": peak - table}
    return Row(name=name, unit="peak bytes of a process", notes=("bytes, no seconds; 3,000,000 rows",), extra=extra)


Measure = Callable[[Bench, str], Row]


def catalogue() -> dict[str, Measure]:
    """All rows by name, in the order of the table."""
    found: dict[str, Measure] = {f"trial-{n}": partial(trial_row, history=n) for n in HISTORIES}
    found |= {f"meta-train-step-{b}": partial(meta_row, lists=b) for b in (1, 16, 100)}
    # After the library's own structure, which they time as well: what they find compiled would lack its time.
    found |= {f"trial-{n}-published": partial(published_trial_row, history=n) for n in HISTORIES}
    found["meta-train-step-published"] = published_meta_row
    found |= {f"trial-105-candidates-{n}": partial(trial_row, candidates=n) for n in (3_000, 30_000)}
    found["trial-105-default"] = partial(trial_row, epochs=FineTuneConfig().epochs)
    found["suggest"] = suggest_row
    found |= {f"runs-{n}": partial(run_row, count=n) for n in (1, 10, 50, 430)}
    found |= {f"members-{n}": partial(trial_row, members=n) for n in (1, 2, 5, 20, 50)}
    found |= {f"columns-{n}": partial(trial_row, columns=n) for n in (3, 8, 32, 64)}
    found |= {f"spaces-{n}": partial(spaces_row, count=n) for n in (1, 2, 4)}
    found |= {"memory-trial": memory_trial_row, "memory-meta-train": memory_meta_row}
    return found


def chosen(quick: bool, only: list[str] | None) -> Iterator[tuple[str, Measure]]:
    """The rows that are asked for.

    Raises:
      ValueError: for a name that there is not.
    """
    rows = catalogue()
    unknown = [name for name in only or [] if name not in rows]
    if unknown:
        raise ValueError(f"--only must name rows, one of {', '.join(rows)}, but got {', '.join(unknown)}")
    return ((name, rows[name]) for name in only or (QUICK if quick else rows))


def record(name: str, measure: Measure, bench: Bench) -> dict[str, Any]:
    """A row as it is kept: one that fails says why, and the others are measured nevertheless."""
    try:
        return measure(bench, name).as_json()
    except (PeerError, RuntimeError, MemoryError) as error:
        words = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0] if words else ''}"
        print(f"{name} failed: {reason}", file=sys.stderr)
        return {**Row(name=name, unit="failed").as_json(), "error": reason}


def linearity(bench: Bench) -> dict[str, float]:
    """Whether a peer's time goes with its epochs: that of three times as many, over three times that of some."""
    found: dict[str, float] = {}
    ways: dict[Peer, Way | None] = {"eager": bench.eager_way("trial"), "best": bench.won.get(("trial", "default"))}
    for peer, way in ways.items():
        if way is None:
            continue
        part = bench.eager_epochs if peer == "eager" else 100
        with peers.Team(
            way.work(Work(peer=peer, kind="trial", device=bench.device or "cpu")), way.processes
        ) as started:
            base = min(started.go(0) for _ in range(2))
            some, more = (min(started.go(n) for _ in range(2)) - base for n in (part, 3 * part))
        found[peer] = more / some / 3
    return found
