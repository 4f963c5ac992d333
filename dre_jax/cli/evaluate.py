"""``dre-jax evaluate``: HPO-B's protocol on one method."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.checks import parse_names
from dre_jax.cli import options
from dre_jax.errors import ConfigError, DataWarning, MethodError
from dre_jax.hpob import Evaluation, Plan
from dre_jax.methods.entries.settings import parse
from dre_jax.methods.registry import host_of
from dre_jax.runtime.devices import cores
from dre_jax.runtime.processes import is_first
from dre_jax.runtime.progress import Bar


@dataclass(frozen=True, kw_only=True)
class Evaluate(options.OnDevices):
    """Run a method on every task and initial design; rerun an interrupted evaluation to resume it.

    Several processes divide the runs among them.
    """

    data: options.Data
    method: Annotated[
        str,
        typer.Option(
            help="A name from `dre-jax methods`, or a class of your own: package.module:Class or path/to/file.py:Class."
        ),
    ]
    out: Annotated[Path, typer.Option(help="Result file in HPO-B's format.")]
    space: options.Spaces = None
    checkpoints: Annotated[Path | None, typer.Option(help="Checkpoint folder, --out of `meta-train`.")] = None
    split: Annotated[str, typer.Option(help="Tasks to run: test or validation.")] = "test"
    trials: Annotated[int, typer.Option(help="Trials after the initial design.", min=1)] = 100
    seeds: Annotated[str | None, typer.Option(help="Initial designs, such as test0,test1. Default: all.")] = None
    epochs: Annotated[int | None, typer.Option(help="Steps of fitting or fine-tuning before each trial.", min=0)] = None
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate of the steps of --epochs.")] = None
    acquisition: Annotated[str | None, typer.Option(help="Acquisition function, such as ei or lcb.")] = None
    settings: options.Settings = None
    mode: Annotated[str, typer.Option(help="HPO-B mode: v3, v3-test or v3-train-augmented.")] = "v3"
    columns: options.Columns = "published"
    continuous: Annotated[
        str | None,
        typer.Option(
            help="Search [0, 1]^D: hpob counts evaluations as HPO-B's handler does, fixed counts every evaluation."
        ),
    ] = None
    surrogates: Annotated[Path | None, typer.Option(help="Folder of HPO-B's surrogates, for --continuous.")] = None
    seed: options.Seed = 0
    workers: Annotated[
        int | None, typer.Option(help="Number of processes for a host method. Default: one per core.", min=1)
    ] = None

    def run(self) -> None:
        """Runs the plan."""
        self.prepare()
        if self.workers is not None and host_of(self.method) is None:
            rule = f"--workers needs a host method, but {self.method!r} is a compiled one"
            raise ConfigError(f"{rule}: choose its devices with --devices")
        run_plan(self.plan, self.out, quiet=self.quiet)

    @property
    def plan(self) -> Plan:
        """The plan of the options."""
        short = {"epochs": self.epochs, "learning_rate": self.learning_rate, "acquisition": self.acquisition}
        texts = [f"{name}={value}" for name, value in short.items() if value is not None]
        return Plan(
            data=self.data,
            mode=self.mode,
            columns=self.columns,
            spaces=tuple(self.space) if self.space else None,
            method=self.method,
            checkpoints=self.checkpoints,
            split=self.split,
            trials=self.trials,
            seeds=None if self.seeds is None else tuple(parse_names(self.seeds, "--seeds")),
            settings=parse([*texts, *(self.settings or [])]),
            continuous=self.continuous,
            surrogates=self.surrogates,
            seed=self.seed,
            workers=self.workers or cores(),
        )


def run_plan(plan: Plan, out: Path, *, quiet: bool) -> None:
    """Runs a plan with progress on standard error and a closing line on standard output.

    Raises `MethodError` at the end, after one line per failed run, if a host method failed.
    """
    if not is_first():  # only the first process prints
        quiet = True
        warnings.simplefilter("ignore", DataWarning)
    evaluation = Evaluation(plan, out)
    with Bar(f"evaluate {plan.label}", evaluation.total, quiet=quiet, start=evaluation.done, unit="runs") as bar:
        for run in evaluation:
            bar.advance_to(evaluation.done, f"{run.space} {run.dataset}")
    if is_first():
        print(evaluation.summary())
    for failed_run in evaluation.failed:
        print(f"dre-jax: failed: {failed_run}", file=sys.stderr)
    if evaluation.failed:
        raise MethodError(evaluation.failures())
