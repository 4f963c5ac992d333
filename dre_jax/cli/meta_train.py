"""``dre-jax meta-train``: a checkpoint per search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre_jax.cli import options

if TYPE_CHECKING:
    from jax import Array

    from dre_jax.data import SearchSpace
    from dre_jax.model import ModelConfig
    from dre_jax.training import MetaTrainConfig


def meta_train(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Checkpoints go to OUT/SPACE.", show_default=False)],
    space: options.Spaces = None,
    steps: Annotated[int, typer.Option(help="Training steps.", min=1)] = 5000,
    lists_per_step: Annotated[int, typer.Option(help="Lists that each member draws for a step.", min=1)] = 1,
    evaluate_every: Annotated[int, typer.Option(help="Steps between two checkpoints.", min=1)] = 1000,
    patience: Annotated[
        int | None, typer.Option(help="Evaluations without a better validation loss before stopping.", min=1)
    ] = None,
    preset: Annotated[str, typer.Option(help="default, or paper: the published set-up.")] = "default",
    mode: Annotated[str, typer.Option(help="HPO-B's: v3, or v3-train-augmented.")] = "v3",
    seed: options.Seed = 0,
    devices: options.Devices = None,
    distributed: options.Distributed = False,
    coordinator: options.Coordinator = None,
    processes: options.Processes = None,
    process_id: options.ProcessId = None,
    quiet: options.Quiet = False,
) -> None:
    """Meta-train on past tasks; the same command after an interruption goes on from the last checkpoint.

    Several processes share out the search spaces.
    """
    from dre_jax.cli.runtime import prepare

    prepare(devices, distributed, coordinator, processes, process_id)
    import jax

    from dre_jax.cli.distributed import wait
    from dre_jax.data import list_spaces, load_space
    from dre_jax.model import preset as model_preset
    from dre_jax.processes import is_first, share
    from dre_jax.training.config import META_TRAINING_PRESETS

    model = model_preset(preset)
    config = replace(
        META_TRAINING_PRESETS[preset],
        steps=steps,
        lists_per_step=lists_per_step,
        evaluate_every=min(evaluate_every, steps),
        patience=patience,
    )
    names = space or list_spaces(data, mode)
    mine = share(names)
    for name in mine:
        train_space(load_space(data, name, mode), model, config, jax.random.key(seed), out / name, quiet=quiet)
    wait()
    if is_first():
        _tell_of([name for name in names if name not in mine], out)


def train_space(
    found: SearchSpace, model: ModelConfig, config: MetaTrainConfig, key: Array, folder: Path, *, quiet: bool
) -> None:
    """Meta-trains one search space; the first process tells of its own, progress and a closing line."""
    from dre_jax.cli.progress import Bar
    from dre_jax.processes import is_first
    from dre_jax.training import trainer

    quiet = quiet or not is_first()
    begun = trainer.last_step(folder) or 0
    with Bar(f"meta-train {found.name}", config.steps, quiet=quiet, start=begun, unit="steps") as bar:
        trained = trainer.meta_train(
            found,
            model,
            config,
            key=key,
            folder=folder,
            report=lambda at: bar.advance_to(at.step, f"loss {at.loss:.3f}"),
        )
    if is_first():
        if trained.resumed_from is not None:
            print(f"{found.name}: went on from step {trained.resumed_from}")
        print(_closing_line(found.name, trained.history[-1], folder))


def _closing_line(name: str, last: Sequence[Any], folder: Path) -> str:
    step, loss, validation = last
    told = "" if validation is None else f", validation loss {validation:.3f}"
    return f"{name}: {step} steps, training loss {loss:.3f}{told}, saved in {folder}"


def _tell_of(names: Sequence[str], out: Path) -> None:
    """Closing lines of the search spaces that other processes have trained."""
    from dre_jax.training.checkpoint import Checkpoint

    for name in names:
        print(_closing_line(name, Checkpoint(out / name).metadata()["history"][-1], out / name))
