"""Which rows there are, and how each is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from benchmarks.suite import children, floors, ours, peers
from benchmarks.suite.peers import Way
from benchmarks.suite.rates import Rates
from benchmarks.suite.rows import Row, Timing, timing
from benchmarks.suite.work import Work
from dre_jax.model import ModelConfig, preset
from dre_jax.training import FineTuneConfig

EPOCHS, TRIALS, COLUMNS = 1000, 100, 16
N_SUPPORT, N_QUERY = 20, 100
QUICK = ("trial-105", "meta-train-step-1", "meta-train-step-16", "trial-10", "suggest")
"""Rows of ``--quick``."""


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
    won: dict[str, Way] = field(default_factory=dict)
    """The fast peer's fastest way, by kind of work, once all were tried."""
    trials: dict[tuple[object, ...], Timing | None] = field(default_factory=dict)
    """Peers' trials that were measured."""

    @property
    def runs(self) -> int:
        """Runs at once."""
        return self.side_by_side or self.cores

    def ways(self, kind: str) -> list[Way]:
        """Ways of the fast peer to try."""
        if kind in self.won:
            return [self.won[kind]]
        if self.device != "cpu":
            return [Way(processes=1, threads=1, compiled=c, runs=self.runs) for c in (True, False)]
        own = [Way(processes=self.cores, threads=1, compiled=c, split_members=kind != "trial") for c in (True, False)]
        if kind == "trial":
            together = [Way(processes=1, threads=self.cores, compiled=True, runs=self.runs)]
        else:
            together = [Way(processes=1, threads=t, compiled=c) for t in {1, self.cores} for c in (True, False)]
        if self.quick:
            return own if kind == "trial" else [own[0], *together[:1]]
        return own + together

    def eager_way(self, kind: str) -> Way:
        """The plain peer: a process a core, each with runs of its own; training uses all threads of one process."""
        if self.device != "cpu":
            return Way(processes=1, threads=1)
        return Way(processes=self.cores if kind == "trial" else 1, threads=1)


def best_time(bench: Bench, work: Work) -> Timing | None:
    """The fast peer's time, in its fastest way; the ways are tried once for each kind of work."""
    if bench.device is None:
        return None
    part = min(bench.best_epochs, bench.epochs) if work.kind == "trial" else _steps(work.lists)
    if bench.quick and work.kind == "trial":
        part = min(part, 200)
    found, way, _ = peers.fastest(
        work, bench.ways(work.kind), part=part, whole=bench.epochs, repeats=max(2, bench.repeats)
    )
    bench.won.setdefault(work.kind, way)
    return found


def eager_time(bench: Bench, work: Work) -> Timing | None:
    """The plain peer's time."""
    if bench.device is None:
        return None
    part = min(bench.eager_epochs, bench.epochs) if work.kind == "trial" else max(2, 20 // work.lists)
    repeats = 2 if bench.quick else 3
    way = bench.eager_way(work.kind)
    found = peers.measure(work, way, part=part, whole=bench.epochs, repeats=repeats)[0]
    if work.kind == "trial" or bench.device != "cpu":
        return found
    more = replace(way, threads=bench.cores)
    other = peers.measure(work, more, part=part, whole=bench.epochs, repeats=repeats)[0]
    return min(found, other, key=lambda one: one.median)


def _steps(lists: int) -> int:
    """Steps of the fast peer that are timed."""
    return max(50, 400 // lists)


def peer_trial(bench: Bench, peer: str, **sizes: int) -> Timing | None:
    """A peer's trial, measured once for all rows that need it."""
    key = (peer, *sorted(sizes.items()))
    if key not in bench.trials:
        work = Work(peer=peer, kind="trial", device=bench.device or "cpu", **sizes)  # type: ignore[arg-type]
        bench.trials[key] = best_time(bench, work) if peer == "best" else eager_time(bench, work)
    return bench.trials[key]


def _our_trial(
    bench: Bench, model: ModelConfig, epochs: int, history: int = 105, candidates: int = 300, columns: int = COLUMNS
) -> Timing:
    return ours.trial(
        model,
        history=history,
        candidates=candidates,
        columns=columns,
        epochs=epochs,
        repeats=bench.repeats,
        runs=bench.runs,
    )


def trial_row(
    bench: Bench,
    name: str,
    *,
    history: int = 105,
    candidates: int = 300,
    columns: int = COLUMNS,
    members: int = 10,
    epochs: int | None = None,
) -> Row:
    """A trial of one run among as many as there are cores; `epochs` are ours, where the peers have more."""
    model, epochs = ours.default_model(members), min(epochs or bench.epochs, bench.epochs)
    sizes = {"history": history, "candidates": candidates, "columns": columns, "members": members}
    floor = floors.trial(model, columns, history, candidates, epochs)
    fewer = f"ours: {epochs} epochs, the default; peers: {bench.epochs}; docs/defaults.md has the regrets of both"
    return Row(
        name=name,
        unit="trial of a run, all cores busy with runs",
        ours=_our_trial(bench, model, epochs, history, candidates, columns),
        eager=peer_trial(bench, "eager", **sizes),
        best=peer_trial(bench, "best", **sizes),
        floor_s=floor.seconds(*bench.rates),
        notes=() if epochs == bench.epochs else (fewer,),
        extra={"flops": floor.flops, **sizes},
    )


def published_row(bench: Bench, name: str) -> Row:
    """The published set-up on both sides: one deep set for all, ties shuffled at every step, an epsilon."""
    model = preset("paper")
    work = Work(peer="eager", kind="trial", preset="paper", device=bench.device or "cpu")
    return Row(
        name=name,
        unit="trial of a run, all cores busy with runs",
        ours=_our_trial(bench, model, bench.epochs),
        eager=eager_time(bench, work),
        floor_s=floors.trial(model, COLUMNS, 105, 300, bench.epochs).seconds(*bench.rates),
        notes=("one deep set for all members, as published; eager with the published code's decisions",),
    )


def meta_row(bench: Bench, name: str, *, lists: int) -> Row:
    """A step of meta-training, members with lists of their own."""
    model = ours.default_model()
    work = floors.step(model, COLUMNS, N_SUPPORT, N_QUERY, lists=lists)
    eager = Work(peer="eager", kind="meta-train", lists=lists, device=bench.device or "cpu")
    return Row(
        name=name,
        unit="step",
        ours=ours.meta_step(model, lists=lists, columns=COLUMNS, repeats=bench.repeats),
        eager=eager_time(bench, eager),
        best=best_time(bench, replace(eager, peer="best")),
        floor_s=work.seconds(*bench.rates),
        extra={"flops": work.flops, "bytes": work.bytes, "state_bytes": floors.state_bytes(model, COLUMNS)},
    )


def run_row(bench: Bench, name: str, *, count: int) -> Row:
    """Whole runs of 100 trials."""
    model, candidates = ours.default_model(), 300
    measured = min(count, 50)
    mine = ours.runs(
        model,
        count=measured,
        candidates=candidates,
        columns=COLUMNS,
        trials=TRIALS,
        epochs=bench.epochs,
        patience=bench.patience,
    )
    notes = [] if measured == count else [f"ours is that of {measured} runs: time goes with the number of runs"]
    notes.append("peers: trials at history 10, 30 and 105, straight lines between them, summed up")
    work = floors.run(model, COLUMNS, ours.DESIGN, TRIALS, candidates, bench.epochs)
    return Row(
        name=name,
        unit="run of 100 trials",
        ours=mine,
        eager=_peer_run(bench, "eager", candidates),
        best=_peer_run(bench, "best", candidates),
        floor_s=work.seconds(*bench.rates),
        notes=tuple(notes) if count > 1 else (*notes, "one run leaves the other cores idle, peers' do not"),
        extra={"flops": work.flops, "runs": count},
    )


def _peer_run(bench: Bench, peer: str, candidates: int) -> Timing | None:
    """The sum of a peer's trials over a run."""
    at = (10, 30, 105)
    found = [peer_trial(bench, peer, history=n, candidates=candidates, columns=COLUMNS, members=10) for n in at]
    points = [one.median for one in found if one is not None]
    if len(points) < len(at):
        return None
    histories = range(ours.DESIGN, ours.DESIGN + TRIALS)
    return timing([sum(between(n, at, points) for n in histories)])


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
    model, sizes = ours.default_model(), {"history": 30, "candidates": 300, "columns": COLUMNS}
    mine = ours.suggestion(model, epochs=bench.epochs, repeats=bench.repeats, **sizes)
    found: dict[str, Timing | None] = {"eager": None, "best": None}
    for peer in found if bench.device else ():
        work = Work(peer=peer, kind="trial", device=bench.device or "cpu", **sizes)  # type: ignore[arg-type]
        part = min(bench.eager_epochs if peer == "eager" else 200, bench.epochs)
        way = Way(processes=1, threads=1, compiled=peer == "best")
        found[peer] = peers.measure(work, way, part=part, whole=bench.epochs, repeats=2)[0]
    return Row(
        name=name,
        unit="call, warm",
        ours=mine,
        **found,
        floor_s=floors.trial(model, COLUMNS, 30, 300, bench.epochs).seconds(*bench.rates),
        notes=("history 30; one run alone",),
        extra={"first_s": mine.median + (mine.compile_s or 0.0)},
    )


def spaces_row(bench: Bench, name: str, *, count: int) -> Row:
    """Search spaces meta-trained side by side, a process each."""
    found = children.spaces_side_by_side(count, bench.cores, COLUMNS, bench.repeats)
    slowest = max(found, key=lambda one: one["median"])
    mine = Timing(median=slowest["median"] / count, low=slowest["low"] / count, high=slowest["high"] / count)
    model = ours.default_model()
    return Row(
        name=name,
        unit="step of one space",
        ours=mine,
        floor_s=floors.step(model, COLUMNS, N_SUPPORT, N_QUERY).seconds(*bench.rates),
        notes=(f"{count} processes, each with {max(1, bench.cores // count)} of {bench.cores} cores",),
    )


def memory_trial_row(bench: Bench, name: str) -> Row:
    """Peak memory of a process that makes trials at 30,000 candidates."""
    sizes = {"history": 105, "candidates": 30_000, "columns": COLUMNS}
    mine = children.result(children.launch("memory_trial", epochs=50, runs=bench.runs, **sizes))
    eager = peers.measure(
        Work(peer="eager", kind="trial", **sizes), Way(processes=1, threads=1), part=2, whole=2, repeats=1
    )[1]
    best = peers.measure(
        Work(peer="best", kind="trial", **sizes), Way(processes=1, threads=1), part=50, whole=50, repeats=1
    )[1]
    notes = (f"bytes, no seconds; ours with {bench.runs} runs in one process, peers with one run",)
    extra = {"ours_bytes": mine["peak"], "idle_bytes": mine["before"], "eager_bytes": eager, "best_bytes": best}
    return Row(name=name, unit="peak bytes of a process", notes=notes, extra=extra)


def memory_meta_row(bench: Bench, name: str) -> Row:
    """Peak memory of meta-training on three million rows."""
    tasks, rows = 50, 60_000
    mine = children.result(children.launch("memory_meta_training", tasks=tasks, rows=rows, columns=COLUMNS))
    table = 4 * tasks * rows * (COLUMNS + 2)
    extra = {"ours_bytes": mine["peak"], "idle_bytes": mine["before"], "table_bytes": table}
    extra["over_table_bytes"] = mine["peak"] - table
    return Row(name=name, unit="peak bytes of a process", notes=("bytes, no seconds; 3,000,000 rows",), extra=extra)


Measure = Callable[[Bench, str], Row]


def catalogue() -> dict[str, Measure]:
    """All rows by name, in the order of the table."""
    found: dict[str, Measure] = {f"trial-{n}": partial(trial_row, history=n) for n in (105, 30, 10)}
    found |= {f"meta-train-step-{b}": partial(meta_row, lists=b) for b in (1, 16, 100)}
    found |= {f"trial-105-candidates-{n}": partial(trial_row, candidates=n) for n in (3_000, 30_000)}
    found["trial-105-default"] = partial(trial_row, epochs=FineTuneConfig().epochs)
    found["trial-105-published"] = published_row
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
    names = only or (QUICK if quick else rows)
    return ((name, rows[name]) for name in names)


def linearity(bench: Bench) -> dict[str, float]:
    """Whether a peer's time goes with its epochs: that of three times as many, over three times that of some."""
    found = {}
    for peer, way in (("eager", bench.eager_way("trial")), ("best", bench.won.get("trial"))):
        if way is None:
            continue
        part = bench.eager_epochs if peer == "eager" else 100
        work = way.work(Work(peer=peer, kind="trial", device=bench.device or "cpu"))  # type: ignore[arg-type]
        with peers.team(work, way.processes) as started:
            base = min(started.go(0) for _ in range(2))
            some, more = (min(started.go(n) for _ in range(2)) - base for n in (part, 3 * part))
        found[peer] = more / some / 3
    return found
