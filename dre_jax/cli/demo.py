"""``dre-jax demo``: the main job on the bundled data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.cli import options

STEPS = 3000
TRIALS = 25
LEARNED = {"dre": {"training.evaluate_every": STEPS // 2}, "hedged-prior": {}}
"""Methods that are meta-trained, into one folder a search space."""
SETTINGS = {"hedged-prior": {}, "dre": {}, "dre-no-finetune": {}, "dre-ri": {"epochs": 50}, "random": {}}
AT = (5, 10, 25)


def demo(
    out: Annotated[Path, typer.Option(help="Checkpoints, results and figures go here.")] = Path("demo-out"),
    seed: options.Seed = 0,
    devices: options.Devices = None,
    quiet: options.Quiet = False,
) -> None:
    """Meta-train on the bundled data, optimise every test task, and compare."""
    from dre_jax.cli.runtime import prepare

    prepare(devices)
    from dre_jax.cli.report import print_summary
    from dre_jax.data import bundled
    from dre_jax.report import write_report

    begun = time.monotonic()
    for space in bundled.spaces():
        _train(space, out, seed, quiet)
    files = {method: _evaluate(method, out, seed, quiet) for method in SETTINGS}
    print_summary(write_report(files, out, at=AT))
    print(f"{time.monotonic() - begun:.0f} s in all; results, figures and report.html in {out}")


def _train(space: str, out: Path, seed: int, quiet: bool) -> None:
    import jax

    from dre_jax.cli.meta_train import train_space
    from dre_jax.data import bundled
    from dre_jax.methods import find

    methods = {name: find(name).make({"training.steps": STEPS, **settings}) for name, settings in LEARNED.items()}
    train_space(bundled.load(space), methods, jax.random.key(seed), out / "checkpoints" / space, quiet=quiet)


def _evaluate(method: str, out: Path, seed: int, quiet: bool) -> Path:
    from dre_jax.benchmark import Plan
    from dre_jax.cli.evaluate import run_plan
    from dre_jax.data import bundled

    path = out / f"{method}.json"
    plan = Plan(
        data=bundled.path(),
        spaces=tuple(bundled.spaces()),
        method=method,
        checkpoints=out / "checkpoints",
        trials=TRIALS,
        settings=SETTINGS[method],
        seed=seed,
    )
    run_plan(plan, path, quiet=quiet)
    return path
