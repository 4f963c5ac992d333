"""The rows of ``python -m benchmarks.accelerator``: which there are, and how each is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import jax

from benchmarks.suite import float64, floors, ours, plan
from benchmarks.suite.floors import Rates, Work
from benchmarks.suite.hpob_shapes import DESIGN_ROWS, DESIGNS, SPACES
from benchmarks.suite.rows import Row, Timing
from dre_jax import RandomSearch
from dre_jax.methods.dre.backends.provenance import backend
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.runtime.setup import prepare

COLUMNS, CANDIDATES = plan.COLUMNS, plan.CANDIDATES
MAX_ERROR = 2e-3
"""Largest mean error of parameters after 20 epochs: XLA's float32 has 1e-4 on a CPU, its TF32 7e-4 on an H100."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    members: int = 10
    epochs: int = 1000
    part_epochs: int = 100
    """Epochs of a call in which an epoch is timed."""
    repeats: int = 5
    tasks: int = 86
    spaces: int = 16
    trials: int = 100
    most_rows: int = 10**9
    eager_epochs: int = 10
    histories: tuple[int, int] = (105, 30)
    few_runs: tuple[int, ...] = (1, 13, 64)
    together: int = 13
    """Search spaces that are meta-trained side by side."""

    @property
    def model(self) -> ModelConfig:
        """The ensemble."""
        return ours.default_model(self.members)

    @property
    def runs(self) -> int:
        """All runs of the tasks."""
        return self.tasks * DESIGNS


LARGE = Sizes()
SMALL = Sizes(
    2,
    4,
    2,
    1,
    tasks=2,
    spaces=2,
    trials=2,
    most_rows=64,
    eager_epochs=4,
    histories=(12, 9),
    few_runs=(1, 2),
    together=2,
)


@dataclass(frozen=True)
class LimitedRow:
    """A row, and the most that it may take."""

    measure: Callable[[Sizes, Rates, str], Row]
    seconds: float
    """With the start of a process, which the first row has to wait for, and all compiling."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment of its process."""


def catalogue(sizes: Sizes, *, full: bool, peers: bool) -> dict[str, LimitedRow]:
    """Returns the rows by name, the most important ones first.

    Args:
      sizes: how much is measured.
      full: whether to measure the whole protocol of HPO-B too.
      peers: whether to measure the PyTorch peers.
    """
    long, short = sizes.histories
    tf32 = {"DRE_JAX_CUDA_PRECISION": "tf32"}
    rows = {
        "float64": LimitedRow(float64_row, 60),
        **_epoch_rows(f"{sizes.runs}", sizes.runs, long),
        "suggest": LimitedRow(suggest_row, 40),
        f"run-tasks-{sizes.runs}": LimitedRow(run_tasks_row, 50),
        "meta-train-step-1": LimitedRow(partial(meta_row, lists=1), 30),
        **_epoch_rows(f"{sizes.few_runs[0]}", sizes.few_runs[0], long),
        **_epoch_rows(f"{sizes.runs}-tf32", sizes.runs, long, tf32),
        **_epoch_rows(f"{sizes.runs}-history-{short}", sizes.runs, short),
        # The same epoch by XLA's scan, where a kernel would compute it.
        f"epoch-{sizes.runs}-scan": LimitedRow(
            partial(epoch_row, runs=sizes.runs, history=long), 40, {"DRE_JAX_CUDA": "0"}
        ),
        f"meta-train-step-1-spaces-{sizes.together}": LimitedRow(partial(meta_row, lists=1, together=True), 30),
    }
    for n in sizes.few_runs[1:]:
        rows |= _epoch_rows(f"{n}", n, long)
    rows |= {f"meta-train-step-{n}": LimitedRow(partial(meta_row, lists=n), 30) for n in (16, 100)}
    if peers:
        rows |= {
            name: LimitedRow(partial(peers_row, row=name), 90) for name in ("trial-105", "peers-meta-train-step-1")
        }
    # Last, as it may take all the time that is left: on a GPU it compiles programs for minutes.
    rows["hpob-programs"] = LimitedRow(partial(hpob_row, epochs=1), 75)
    if full:
        rows["hpob"] = LimitedRow(partial(hpob_row, epochs=sizes.epochs), 7200)
    return rows


def _epoch_rows(
    name: str, runs: int, history: int, variables: Mapping[str, str] | None = None
) -> dict[str, LimitedRow]:
    """Returns the rows of an epoch: with the drawing of lists and all else that a call does, and its launch alone."""
    kinds = {"epoch": ours.epoch, "launch": ours.launch}
    return {
        f"{kind}-{name}": LimitedRow(
            partial(epoch_row, runs=runs, history=history, time=time), 40, dict(variables or {})
        )
        for kind, time in kinds.items()
    }


def call(what: str, *arguments: Any) -> Any:
    """Calls `environment` or `measure` by name, for a process of its own."""
    functions: dict[str, Callable[..., Any]] = {"environment": environment, "measure": measure}
    return functions[what](*arguments)


@cache
def _prepare() -> None:
    jax.config.update("jax_enable_compilation_cache", False)  # compile time is measured
    prepare()


def environment() -> dict[str, Any]:
    """Returns devices, versions and rates; this process takes the accelerator."""
    _prepare()
    return {**plan.environment(), "steps": backend()["steps"]}


def measure(name: str, sizes: Sizes, options: Mapping[str, Any], rates: Rates | None) -> Row:
    """Measures a row; options as of `catalogue`. Without the device's rates, a row has no floor."""
    _prepare()
    row = catalogue(sizes, **options)[name].measure(sizes, rates or Rates(1.0, 1.0), name)
    return row if rates else replace(row, floor_s=None)


def float64_row(sizes: Sizes, rates: Rates, name: str) -> Row:
    """Compares parameters after a few epochs with those of a computation in float64 on the CPU.

    Raises:
      RuntimeError: if they differ by more than rounding.
    """
    epochs = 20
    problem = float64.make_problem(sizes.model, sizes.histories[0])
    outcome = float64.solve(sizes.model, problem, epochs)
    exact = float64.solve_in_float64(sizes.members, problem, epochs)
    errors = float64.errors(outcome, exact)
    if not errors.params <= MAX_ERROR:
        raise RuntimeError(f"parameters must be within {MAX_ERROR} of float64, but the error is {errors.params:.1e}")
    unit = f"no time: mean error of parameters, and of centred scores in their deviations, after {epochs} epochs"
    return Row(name=name, unit=unit, extra=errors._asdict())


def epoch_row(
    sizes: Sizes, rates: Rates, name: str, *, runs: int, history: int, time: Callable[..., Timing] = ours.epoch
) -> Row:
    """Measures an epoch of fine-tuning of all runs."""
    timing = time(
        sizes.model, runs=runs, history=history, columns=COLUMNS, epochs=sizes.part_epochs, repeats=sizes.repeats
    )
    support = max(1, history // 5)
    one = floors.step(sizes.model, COLUMNS, support, history - support)
    floor = Work(runs * one.flops, runs * one.bytes).seconds(*rates)
    return Row(
        name=name, unit="epoch of all runs", ours=timing, floor_s=floor, extra={"runs": runs, "history": history}
    )


def suggest_row(sizes: Sizes, rates: Rates, name: str) -> Row:
    """Measures a warm suggestion."""
    bench = plan.Bench(cores=1, rates=rates, device=None, epochs=sizes.epochs, repeats=sizes.repeats)
    return plan.suggest_row(bench, name)


def run_tasks_row(sizes: Sizes, rates: Rates, name: str) -> Row:
    """Measures a trial of all runs by `run_tasks`, and the host's share: the same with a method that does nothing."""
    history = sizes.histories[0]
    shape: dict[str, Any] = {"history": history, "candidates": CANDIDATES, "columns": COLUMNS}
    time: Callable[..., Timing] = partial(
        ours.one_trial, tasks=sizes.tasks, designs=DESIGNS, repeats=sizes.repeats, **shape
    )
    timing = time(ours.method(sizes.model, sizes.epochs), ours.parameters(sizes.model, COLUMNS))
    host = time(RandomSearch(), None)
    floor = sizes.runs * floors.trial(sizes.model, COLUMNS, history, CANDIDATES, sizes.epochs).seconds(*rates)
    unit = f"trial of {sizes.runs} runs, {sizes.epochs} epochs"
    return Row(name=name, unit=unit, ours=timing, floor_s=floor, extra={"host_s": host.median, **shape})


def meta_row(sizes: Sizes, rates: Rates, name: str, *, lists: int, together: bool = False) -> Row:
    """Measures a step of meta-training, of one search space or of several side by side."""
    spaces = sizes.together if together else 1
    one = floors.step(sizes.model, COLUMNS, plan.N_SUPPORT, plan.N_QUERY, lists=lists)
    timing = ours.meta_step(sizes.model, lists=lists, columns=COLUMNS, repeats=sizes.repeats, spaces=spaces)
    floor, extra = Work(spaces * one.flops, spaces * one.bytes).seconds(*rates), {"lists": lists, "spaces": spaces}
    return Row(name=name, unit="step of all spaces", ours=timing, floor_s=floor, extra=extra)


def hpob_row(sizes: Sizes, rates: Rates, name: str, *, epochs: int) -> Row:
    """Measures all runs of HPO-B's test split as `dre-jax evaluate` does: search spaces together."""
    spaces = SPACES[: sizes.spaces]
    rows = {space.name: min(space.rows_per_task, sizes.most_rows) for space in spaces}
    tasks = {space.name: ours.random_tasks(space.test_tasks, rows[space.name], space.columns) for space in spaces}
    n_runs = DESIGNS * sum(map(len, tasks.values()))
    shape = {"design": DESIGN_ROWS, "designs": DESIGNS, "trials": sizes.trials, "epochs": epochs}
    protocol = ours.runs_of_spaces(sizes.model, tasks, **shape)
    floor = 0.0
    for space in spaces:
        work = floors.run(sizes.model, space.columns, DESIGN_ROWS, sizes.trials, rows[space.name], epochs)
        floor += space.test_tasks * DESIGNS * work.seconds(*rates)
    total = protocol.seconds - protocol.compile_s
    memory = jax.devices()[0].memory_stats() or {}  # empty on a CPU
    return Row(
        name=name,
        unit=f"all {n_runs} runs of {sizes.trials} trials, {epochs} epochs each",
        ours=Timing(median=total, low=total, high=total, compile_s=protocol.compile_s),
        floor_s=floor,
        notes=("once; synthetic tables of HPO-B's shapes; no peer, as theirs take hours",),
        extra={"programs": protocol.programs, "runs": n_runs, "peak_bytes": memory.get("peak_bytes_in_use")},
    )


def peers_row(sizes: Sizes, rates: Rates, name: str, *, row: str) -> Row:
    """Measures a row of ``python -m benchmarks`` with both peers, on the device of JAX."""
    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    options: dict[str, Any] = {"epochs": sizes.epochs, "repeats": sizes.repeats, "eager_epochs": sizes.eager_epochs}
    bench = plan.Bench(cores=1, rates=rates, device=device, side_by_side=max(sizes.few_runs), **options)
    return replace(plan.catalogue()[row.removeprefix("peers-")](bench, name), name=name)
