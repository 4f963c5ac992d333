"""``dre-jax meta-train``: a checkpoint per search space."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre_jax.cli import options

if TYPE_CHECKING:
    from jax import Array

    from dre_jax.data import SearchSpace
    from dre_jax.search.method import Method


def meta_train(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Checkpoints go to OUT/SPACE.", show_default=False)],
    method: Annotated[str, typer.Option(help="A method with transfer that `dre-jax methods` lists.")] = "recommended",
    space: options.Spaces = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of the method's ranking ensemble, 5000 by default.", min=1)
    ] = None,
    lists_per_step: Annotated[
        int | None, typer.Option(help="Lists that each of its members draws for a step, 1 by default.", min=1)
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Steps between two of its checkpoints, 1000 by default.", min=1)
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Evaluations without a better validation loss before it stops.", min=1)
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Of the ensemble: default, or paper, the published set-up. The method's own without."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Any field of the method's configuration; `dre-jax methods NAME` lists them. May be given again.",
        ),
    ] = None,
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

    What `evaluate --checkpoints` reads of a method, or of the ranking ensemble that it contains. Several processes
    share out the search spaces.
    """
    from dre_jax.cli.runtime import prepare

    prepare(devices, distributed, coordinator, processes, process_id)
    import jax

    from dre_jax.cli.distributed import wait
    from dre_jax.data import list_spaces, load_space
    from dre_jax.data.columns import read_descriptor
    from dre_jax.methods import find
    from dre_jax.methods.learn import method_to_learn
    from dre_jax.methods.settings import parse
    from dre_jax.processes import is_first, share

    entry = find(method)
    training: dict[str, object] = {"steps": steps, "lists_per_step": lists_per_step, "patience": patience}
    training["evaluate_every"] = evaluate_every
    made = method_to_learn(entry, parse(settings or []), preset=preset, training=training)
    names = space or list_spaces(data, mode)
    mine = share(names)
    for name in mine:
        found, descriptor = load_space(data, name, mode), read_descriptor(data, name)
        extra = {} if descriptor is None else {"descriptor": descriptor}
        train_space(found, entry.name, made, jax.random.key(seed), out / name, extra, quiet=quiet)
    wait()
    if is_first():
        for name in names:
            if name not in mine:
                print(_closing_line(out / name))


def train_space(
    found: SearchSpace,
    name: str,
    method: Method,
    key: Array,
    folder: Path,
    extra: Mapping[str, Any] | None = None,
    *,
    quiet: bool,
) -> None:
    """Meta-trains a method on one search space; the first process tells of its own, progress and a closing line."""
    from dre_jax.cli.progress import Bar
    from dre_jax.methods.fitted import find_ensemble
    from dre_jax.methods.learn import learn
    from dre_jax.processes import is_first
    from dre_jax.training import trainer

    quiet = quiet or not is_first()
    ensemble = find_ensemble(method)
    begun = trainer.last_step(folder) or 0

    def tell() -> None:
        if not quiet:
            print(f"meta-train {found.name}: fitting {name}", file=sys.stderr, flush=True)

    with Bar(
        f"meta-train {found.name}",
        ensemble.training.steps if ensemble else 0,
        quiet=quiet or ensemble is None,
        start=begun,
        unit="steps",
    ) as bar:
        trained = learn(
            name,
            method,
            found,
            key=key,
            folder=folder,
            extra=extra,
            report=lambda at: bar.advance_to(at.step, f"loss {at.loss:.3f}"),
            tell=tell,
        )
    if is_first():
        if trained is not None and trained.resumed_from is not None:
            print(f"{found.name}: went on from step {trained.resumed_from}")
        print(_closing_line(folder))


def _closing_line(folder: Path) -> str:
    """What a search space's checkpoint holds now."""
    from dre_jax.methods.fitted import describe, is_fitted

    found = describe(folder)
    told = [f"{found.name} fitted to {len(found.facts['tasks'])} tasks"] if is_fitted(folder) else []
    if "losses" in found.facts:
        step, loss, validation = found.facts["losses"]
        told += [f"{step} steps", f"training loss {loss:.3f}"]
        told += [] if validation is None else [f"validation loss {validation:.3f}"]
    return f"{found.space}: {', '.join(told)}, saved in {folder}"
