"""Which rows there are, and how each is measured."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from benchmarks.suite import floors, ours, peer_timing
from benchmarks.suite.floors import Rates
from benchmarks.suite.peer_work import Peer, PeerWork, Way
from benchmarks.suite.rows import Row, Timing, markdown
from dre_jax.cli.version import describe
from dre_jax.data.files import write_json
from dre_jax.methods.dre.model.model_config import preset
from dre_jax.methods.dre.training_config import FineTuneConfig

EPOCHS, COLUMNS, CANDIDATES = 1000, 16, 300
N_SUPPORT, N_QUERY = 20, 100
HISTORIES = (105, 30, 10)
_PUBLISHED_NOTE = (
    "one deep set for all members and the same lists, as published; eager with the published code's decisions, ours "
    "and best with an exact loss"
)


@dataclass
class Bench:
    cores: int
    rates: Rates
    device: str | None = "cpu"
    """Of the peers; None leaves them out."""
    epochs: int = EPOCHS
    repeats: int = 5
    eager_epochs: int = 20
    side_by_side: int | None = None
    """Runs at once; one a core by default."""
    fastest_ways: dict[tuple[str, str], Way] = field(default_factory=dict)
    """Of the fast peer, by kind of work and structure, once all were timed."""
    peer_times: dict[PeerWork, Timing] = field(default_factory=dict)
    """Times of the peers' work that was done."""

    @property
    def runs(self) -> int:
        return self.side_by_side or self.cores

    def ways(self, work: PeerWork) -> list[Way]:
        """Returns the ways of a peer to time: processes of one thread, or one with all threads; compiled or not."""
        both = (True, False)
        if work.peer == "eager":
            if self.device != "cpu":
                return [Way(processes=1, threads=1)]
            if work.kind == "trial":
                return [Way(processes=self.cores, threads=1)]
            return [Way(processes=1, threads=t) for t in (1, self.cores)]
        if (work.kind, work.preset) in self.fastest_ways:
            return [self.fastest_ways[work.kind, work.preset]]
        if self.device != "cpu":
            return [Way(processes=1, threads=1, compiled=c, runs=self.runs) for c in both]
        # Members that share a deep set cannot be shared out among processes.
        split = work.kind != "trial" and work.preset == "default"
        own = [Way(processes=self.cores, threads=1, compiled=c, split_members=split) for c in both]
        if work.kind == "trial":
            together = [Way(processes=1, threads=self.cores, compiled=True, runs=self.runs)]
            return own + together
        together = [Way(processes=1, threads=t, compiled=c) for t in {1, self.cores} for c in both]
        return (own if split else []) + together

    def part(self, work: PeerWork) -> int:
        """Returns the epochs or steps of a peer that are timed."""
        if work.kind != "trial":
            return max(2, 20 // work.lists) if work.peer == "eager" else max(50, 400 // work.lists)
        return min(self.eager_epochs if work.peer == "eager" else 500, self.epochs)

    def peer(self, peer: Peer, **sizes: Any) -> Timing | None:
        """Returns a peer's time of some work in its fastest way, measured once; None where there are no peers."""
        if self.device is None:
            return None
        work = PeerWork(peer=peer, device=self.device, **sizes)
        if work not in self.peer_times:
            repeats = max(2, self.repeats) if peer == "best" else 3
            self.peer_times[work], way = peer_timing.fastest(
                work, self.ways(work), part=self.part(work), whole=self.epochs, repeats=repeats
            )
            if peer == "best":
                self.fastest_ways.setdefault((work.kind, work.preset), way)
        return self.peer_times[work]

    def both(self, **sizes: Any) -> dict[str, Timing | None]:
        return {peer: self.peer(peer, **sizes) for peer in get_args(Peer)}


def trial_row(
    bench: Bench,
    name: str,
    *,
    history: int = 105,
    candidates: int = CANDIDATES,
    columns: int = COLUMNS,
    members: int = 10,
    epochs: int | None = None,
    published: bool = False,
) -> Row:
    """Measures a trial of one run among as many as there are cores.

    ``epochs`` are ours, where the peers have more. A published row has that structure on all sides, and the time of the
    library's own besides.
    """
    own, epochs = ours.default_model(members), min(epochs or bench.epochs, bench.epochs)
    model = preset("paper") if published else own
    sizes: dict[str, Any] = {"history": history, "candidates": candidates, "columns": columns}
    own_time: Callable[[Any], Timing] = partial(
        ours.trial, epochs=epochs, repeats=bench.repeats, runs=bench.runs, **sizes
    )
    floor = floors.trial(model, columns, history, candidates, epochs)
    fewer = (
        f"ours: {epochs} epochs, the default; peers: {bench.epochs}; docs/results/earlier.md has the regrets of both"
    )
    return Row(
        name=name,
        unit="trial of a run, all cores busy with runs",
        ours=own_time(model),
        **bench.both(kind="trial", members=members, preset="paper" if published else "default", **sizes),
        floor_s=floor.seconds(*bench.rates),
        notes=(_PUBLISHED_NOTE,) * published + (fewer,) * (epochs < bench.epochs),
        extra={"flops": floor.flops, "members": members, **sizes}
        | ({"default_s": own_time(own).median} if published else {}),
    )


def meta_row(bench: Bench, name: str, *, lists: int = 1, published: bool = False) -> Row:
    """Measures a step of meta-training, members with lists of their own.

    A published row has one list for all members, and the time of the library's own structure besides.
    """
    model = preset("paper") if published else ours.default_model()
    own_time = partial(ours.meta_step, lists=lists, columns=COLUMNS, repeats=bench.repeats)
    work = floors.step(model, COLUMNS, N_SUPPORT, N_QUERY, lists=lists)
    return Row(
        name=name,
        unit="step",
        ours=own_time(model, own_lists=not published),
        **bench.both(kind="meta-train", lists=lists, preset="paper" if published else "default"),
        floor_s=work.seconds(*bench.rates),
        notes=(_PUBLISHED_NOTE,) * published,
        extra={"flops": work.flops, "bytes": work.bytes}
        | ({"default_s": own_time(ours.default_model()).median} if published else {}),
    )


def suggest_row(bench: Bench, name: str) -> Row:
    """Measures a warm call of `Suggester.observe_and_suggest`; the first takes its compile time more."""
    model, sizes = ours.default_model(), {"history": 30, "candidates": CANDIDATES, "columns": COLUMNS}
    call = ours.suggestion(model, epochs=bench.epochs, repeats=bench.repeats, **sizes)
    alone: dict[str, Timing | None] = {}
    for peer in get_args(Peer) if bench.device else ():
        work = PeerWork(peer=peer, kind="trial", device=bench.device or "cpu", history=30)
        part = min(bench.eager_epochs if peer == "eager" else 200, bench.epochs)
        way = Way(processes=1, threads=1, compiled=peer == "best")
        alone[peer] = peer_timing.measure(work, way, part=part, whole=bench.epochs, repeats=2)
    return Row(
        name=name,
        unit="call, warm",
        ours=call,
        **alone,
        floor_s=floors.trial(model, COLUMNS, 30, CANDIDATES, bench.epochs).seconds(*bench.rates),
        notes=("history 30; one run alone",),
        extra={"first_s": call.median + (call.compile_s or 0.0)},
    )


Measure = Callable[[Bench, str], Row]


def catalogue() -> dict[str, Measure]:
    """Returns all rows by name, in the order of the table."""
    rows: dict[str, Measure] = {f"trial-{n}": partial(trial_row, history=n) for n in HISTORIES}
    rows |= {f"meta-train-step-{b}": partial(meta_row, lists=b) for b in (1, 16, 100)}
    # After the library's own structure, which they time as well: what is compiled already would lack its time.
    rows |= {f"trial-{n}-published": partial(trial_row, history=n, published=True) for n in HISTORIES}
    rows["meta-train-step-published"] = partial(meta_row, published=True)
    rows |= {f"trial-105-candidates-{n}": partial(trial_row, candidates=n) for n in (3_000, 30_000)}
    rows["trial-105-default"] = partial(trial_row, epochs=FineTuneConfig().epochs)
    rows["suggest"] = suggest_row
    rows |= {f"members-{n}": partial(trial_row, members=n) for n in (1, 2, 5, 20, 50)}
    return rows | {f"columns-{n}": partial(trial_row, columns=n) for n in (3, 8, 32, 64)}


def run(
    module: str,
    arguments: list[str],
    rows: Mapping[str, Measure],
    out: Path | None,
    **settings: Any,
) -> int:
    """Measures rows in this process and reports them; returns the exit status.

    ``settings`` are fields of `Bench`.
    """
    about = environment()
    bench = Bench(cores=about["cores"], rates=Rates(*(about[rate] for rate in RATES)), **settings)
    about["peer_device"] = bench.device
    measures = {name: partial(measure, bench, name) for name, measure in rows.items()}
    return report(module, arguments, lambda: about, measures, out)


RATES = ("matrix_flops_per_s", "copy_bytes_per_s")


def environment() -> dict[str, Any]:
    """Returns devices, versions and the measured rates of this machine, as the file has them."""
    about = {**describe(), "load_before": os.getloadavg()[0]}
    return about | dict(zip(RATES, floors.peak_rates(about["cores"]), strict=True))


def report(
    module: str,
    arguments: list[str],
    environment: Callable[[], dict[str, Any]],
    rows: Mapping[str, Callable[[], Row]],
    out: Path | None,
) -> int:
    """Measures rows, writes the file after each, prints the table, and returns the exit status.

    A row that fails says why, and the others are measured nevertheless; so it is with the environment.
    """
    begin, results = time.perf_counter(), list[dict[str, Any]]()
    plain = [Path(word).name if "/" in word else word for word in arguments]  # without folders
    about: dict[str, Any] = {"command": " ".join(["python", "-m", module, *plain])}
    try:
        about |= environment()
    except (RuntimeError, MemoryError) as error:
        about["error"] = reason_of(error)
        print(f"environment failed: {about['error']}", file=sys.stderr)
    for name, measure in rows.items():
        print(f"{time.perf_counter() - begin:5.0f} s  {name}", file=sys.stderr)
        try:
            results.append(measure().as_json())
        except (RuntimeError, MemoryError) as error:
            reason = reason_of(error)
            print(f"{name} failed: {reason}", file=sys.stderr)
            results.append({**Row(name=name, unit="failed").as_json(), "error": reason})
        about["took_s"] = round(time.perf_counter() - begin)
        if out:
            write_json(out, {"environment": about, "rows": results}, indent=1)
    keys = ("devices", "cores", "load_before", "took_s")
    print(", ".join(f"{key} {about[key]}" for key in keys if key in about))
    if all(rate in about for rate in RATES):
        print(f"matrix product {about[RATES[0]] / 1e9:.0f} GFLOP/s, copy {about[RATES[1]] / 1e9:.1f} GB/s")
    print(markdown(results))
    return 1 if any("error" in row for row in [about, *results]) else 0


def reason_of(error: Exception) -> str:
    """Returns the class of an error and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
