"""``dre-jax demo``: the main job on the bundled data."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import typer

from dre_jax.cli import options
from dre_jax.cli.evaluate import run_plan
from dre_jax.cli.meta_train import train_space
from dre_jax.cli.report import print_summary
from dre_jax.data import bundled
from dre_jax.hpob import Plan
from dre_jax.methods import find
from dre_jax.runtime.jit import compile_all_with_less_effort
from dre_jax.runtime.setup import prepare

META_TRAINED = ("dre", "hedged-prior")
"""Methods that are meta-trained, into one folder per search space."""


@dataclass(frozen=True)
class Size:
    """Size of the demo."""

    steps: int
    trials: int
    at: tuple[int, ...]
    methods: Mapping[str, Mapping[str, Any]]
    """Settings by name."""
    spaces: tuple[str, ...] | None = None
    """All by default."""


FULL = Size(
    steps=2000,
    trials=25,
    at=(5, 10, 25),
    methods={"hedged-prior": {}, "dre": {}, "dre-no-finetune": {}, "dre-ri": {"epochs": 50}, "random": {}},
)
QUICK = Size(steps=500, trials=10, at=(5, 10), methods={"hedged-prior": {}, "dre": {}, "random": {}}, spaces=("svm",))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for checkpoints, results and figures.")] = Path("demo-out"),
    quick: Annotated[
        bool, typer.Option("--quick", help="One search space, three methods, ten trials: under a minute.")
    ] = False,
    seed: options.Seed = 0,
    devices: options.Devices = None,
    quiet: options.Quiet = False,
) -> None:
    """Meta-train on the bundled data, optimise every test task, and compare."""
    compile_all_with_less_effort()  # two dozen programs, each of which runs for seconds
    prepare(devices)
    from dre_jax.report import write_report

    start, scale = time.monotonic(), QUICK if quick else FULL
    for space in scale.spaces or bundled.spaces():
        _train(space, out, scale, seed, quiet)
    files = {method: _evaluate(method, out, scale, seed, quiet) for method in scale.methods}
    print_summary(write_report(files, out, at=scale.at))
    print(f"{time.monotonic() - start:.0f} s in all; results, figures and report.html in {out}")


def _train(space: str, out: Path, scale: Size, seed: int, quiet: bool) -> None:
    more = {"dre": {"training.evaluate_every": scale.steps // 2}}
    methods = {name: find(name).make({"training.steps": scale.steps, **more.get(name, {})}) for name in META_TRAINED}
    train_space(bundled.load(space), methods, jax.random.key(seed), out / "checkpoints" / space, quiet=quiet)


def _evaluate(method: str, out: Path, scale: Size, seed: int, quiet: bool) -> Path:
    path = out / f"{method}.json"
    plan = Plan(
        data=bundled.path(),
        spaces=scale.spaces or tuple(bundled.spaces()),
        method=method,
        checkpoints=out / "checkpoints" if find(method).transfer else None,
        trials=scale.trials,
        seeds=("test0",),
        settings=dict(scale.methods[method]),
        seed=seed,
    )
    run_plan(plan, path, quiet=quiet)
    return path
