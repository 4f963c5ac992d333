"""``dre-jax meta-train``: a checkpoint per search space."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import jax
import typer

from dre_jax.cli import options
from dre_jax.data import SearchSpace, list_spaces, load_space
from dre_jax.data.columns import read_descriptor
from dre_jax.data.raw_columns import fixed_descriptor
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import METHODS, find
from dre_jax.methods.checkpoints.fitted import has_ensemble, has_fitted, load_fitted
from dre_jax.methods.checkpoints.meta_training import configure_training, meta_train_ensembles, meta_train_method
from dre_jax.methods.checkpoints.training import TrainingCheckpoint
from dre_jax.methods.dre.many_spaces import gains_side_by_side
from dre_jax.methods.dre.trainer import TrainingProgress
from dre_jax.methods.settings import parse
from dre_jax.runtime.distributed import wait
from dre_jax.runtime.processes import is_first, share
from dre_jax.runtime.progress import Bar
from dre_jax.runtime.setup import prepare
from dre_jax.search.method import Method


def meta_train(
    out: Annotated[
        Path,
        typer.Option(
            help="Checkpoint folder: OUT/SPACE for each search space, OUT itself for past trials.", show_default=False
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="Folder of meta-datasets in HPO-B's v3 layout.")] = None,
    from_optuna: Annotated[
        str | None,
        typer.Option(
            metavar="STORAGE", help="Past Optuna studies instead of --data: URL of a database, or path of a journal."
        ),
    ] = None,
    from_csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Past trials instead of --data: one row per trial, one column per hyperparameter."
        ),
    ] = None,
    from_surrogate: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Past studies that a surrogate of another search space keeps."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that names the task in FILE; '' for one task. Default: task."),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the value in FILE. Default: value.")
    ] = None,
    direction: Annotated[str | None, typer.Option(help="minimize or maximize the values in FILE.")] = None,
    space_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Search space of the past studies or trials, JSON.")
    ] = None,
    method: Annotated[str, typer.Option(help="A method with transfer from `dre-jax methods`.")] = "recommended",
    space: options.Spaces = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of the ranking ensemble. Default: 5000.", min=1)
    ] = None,
    lists_per_step: Annotated[
        int | None, typer.Option(help="Lists that each member draws per step. Default: 1.", min=1)
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Steps between two evaluations and checkpoints. Default: 1000.", min=1)
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after this many evaluations without a better validation loss.", min=1)
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Preset of the ensemble: default, or paper (the published set-up)."),
    ] = None,
    settings: options.Settings = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Keep past tasks in the host's memory, and send the devices what the ranking ensemble draws of them. "
            "Default: when they take too much of a device's memory.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="HPO-B mode: v3 or v3-train-augmented.")] = "v3",
    columns: options.Columns = "published",
    seed: options.Seed = 0,
    devices: options.Devices = None,
    distributed: options.Distributed = False,
    coordinator: options.Coordinator = None,
    processes: options.Processes = None,
    process_id: options.ProcessId = None,
    quiet: options.Quiet = False,
) -> None:
    """Meta-train on past tasks; rerun an interrupted command to resume from the last checkpoint.

    `evaluate --checkpoints`, `suggest --checkpoint` and `tune --surrogate` read the result. The ranking ensemble of
    `dre` is trained beside the recommended method, so that one folder serves both. Several processes share out the
    search spaces.
    """
    prepare(devices, distributed, coordinator, processes, process_id)
    entry = find(method)
    training: dict[str, object] = {"steps": steps, "lists_per_step": lists_per_step, "patience": patience}
    training["evaluate_every"] = evaluate_every
    methods = {entry.name: configure_training(entry, parse(settings or []), preset=preset, training=training)}
    if (name := entry.companion) is not None:  # first, since it says how far it is
        methods = {name: configure_training(find(name), {}, preset=preset, training=training), **methods}
    options_of_columns = {"direction": direction, "task": task, "value": value}
    table: dict[str, str | None] = {name: text for name, text in options_of_columns.items() if text is not None}
    table |= {"task": None} if task == "" else {}
    sources = {"--data": data, "--from-optuna": from_optuna, "--from-csv": from_csv, "--from-surrogate": from_surrogate}
    _check_sources(sources, table, space_file, space)
    names = ["."] if data is None else space or list_spaces(data, mode)
    mine = share(names)
    if data is not None and len(mine) > 1 and not stream and gains_side_by_side():
        spaces = {out / name: _read_space(data, name, mode, columns)[:2] for name in mine}
        _train_ensembles(spaces, methods, jax.random.key(seed), quiet=quiet)
    for name in mine:
        if data is None:
            tasks, extra, arrays = _read_past(from_optuna, from_csv, from_surrogate, table, space_file, seed)
        else:
            tasks, extra, arrays = _read_space(data, name, mode, columns)
        train_space(tasks, methods, jax.random.key(seed), out / name, extra, arrays, stream=stream, quiet=quiet)
    wait()
    if is_first():
        for name in names:
            if name not in mine:
                print(_closing_lines(out / name))


def _check_sources(
    sources: Mapping[str, object], columns: Mapping[str, str | None], space_file: Path | None, spaces: list[str] | None
) -> None:
    """Checks that the options name one source of past tasks, and only what goes with it. Raises `ConfigError`."""
    used = [name for name, source in sources.items() if source is not None]
    if len(used) != 1:
        raise ConfigError(f"past tasks come from one of {', '.join(sources)}, but got {' and '.join(used) or 'none'}")
    if columns and used != ["--from-csv"]:
        raise ConfigError(f"--{next(iter(columns))} goes with --from-csv, but got {used[0]}")
    if used == ["--from-csv"] and "direction" not in columns:
        raise ConfigError("--from-csv takes --direction, minimize or maximize, but got none")
    if used == ["--data"] and space_file is not None:
        raise ConfigError("--space-file goes with --from-optuna, --from-csv or --from-surrogate, but got --data")
    if used != ["--data"] and (space_file is None or spaces):
        option = "--space" if spaces else "none"
        raise ConfigError(f"{used[0]} takes the search space from --space-file, but got {option}")


_Tasks = tuple[SearchSpace, dict[str, Any], Callable[[], dict[str, Any]]]
"""A search space, further entries of its checkpoint, and the function of its further arrays."""


def _read_space(data: Path, name: str, mode: str, columns: str) -> _Tasks:
    tasks, descriptor = load_space(data, name, mode, columns=columns), read_descriptor(data, name)
    if descriptor is None:
        return tasks, {}, dict
    return tasks, {"descriptor": fixed_descriptor(name, descriptor) if columns == "fixed" else descriptor}, dict


def _read_past(
    storage: str | None, table: Any, surrogate: Path | None, columns: Mapping[str, Any], space_file: Any, seed: int
) -> _Tasks:
    """Returns past studies or trials; prints exclusions to standard error."""
    from dre_jax.tuning import Surrogate, from_csv, from_studies, read_space
    from dre_jax.tuning.past.studies import keep_studies
    from dre_jax.tuning.past.tasks import describe_changes
    from dre_jax.tuning.saved_surrogate import SPACE_NAME, checkpoint_extra
    from dre_jax.tuning.surrogate import start_design

    space = read_space(space_file)
    if surrogate is not None:
        past = Surrogate.load(surrogate).past_in(space)
    else:
        past = from_csv(table, space, **columns) if storage is None else from_studies(storage, space)
    for one in past.exclusions:
        print(f"dre-jax: left out: {one}", file=sys.stderr)
    if changes := describe_changes(past):
        print(f"dre-jax: {changes}", file=sys.stderr)
    if not past.tasks:
        raise DataError(f"at least one past task must fit {space_file}, but none does")
    start = start_design(past, None, seed)
    names = list(past.tasks)
    extra = checkpoint_extra(past.space, start, past.direction, past.metric, names, constrained=past.constrained)
    tasks = past.search_space(SPACE_NAME)
    return tasks, extra, lambda: keep_studies(tasks, jax.random.key(seed)).arrays()


def train_space(
    data: SearchSpace,
    methods: Mapping[str, Method],
    key: jax.Array,
    folder: Path,
    extra: Mapping[str, Any] | None = None,
    extra_arrays: Callable[[], dict[str, Any]] = dict,
    *,
    stream: bool | None = None,
    quiet: bool,
) -> None:
    """Meta-trains methods on one search space, into one folder; the first process prints a closing line."""
    quiet = quiet or not is_first()
    what, resume_steps = f"meta-train {data.name}", []
    for name, method in methods.items():
        start = TrainingCheckpoint(folder).latest_step() or 0
        n_steps = cast(Any, method).training.steps if has_ensemble(method) else 0
        on_fit = partial(print, f"{what}: fitting {name}", file=sys.stderr, flush=True)
        with Bar(what, n_steps, quiet=quiet or not n_steps, start=start, unit="steps") as bar:
            result = meta_train_method(
                name,
                method,
                data,
                key=key,
                folder=folder,
                extra=extra,
                extra_arrays=extra_arrays,
                report=partial(_show_progress, bar),
                on_fit=(lambda: None) if quiet else on_fit,
                stream=stream,
            )
        if result is not None and result.step != start and result.resumed_from is not None:
            resume_steps.append(result.resumed_from)
    if is_first():
        for step in resume_steps:
            print(f"{data.name}: went on from step {step}")
        print(_closing_lines(folder))


def _train_ensembles(
    spaces: Mapping[Path, tuple[SearchSpace, Mapping[str, Any]]],
    methods: Mapping[str, Method],
    key: jax.Array,
    *,
    quiet: bool,
) -> None:
    """Meta-trains the ensembles among the methods on all search spaces at once; `train_space` finds them complete."""
    for name, method in methods.items():
        if has_ensemble(method):
            what, n_steps = f"meta-train {len(spaces)} search spaces", cast(Any, method).training.steps
            with Bar(what, n_steps, quiet=quiet or not is_first(), unit="steps") as bar:
                results = meta_train_ensembles(name, method, spaces, key=key, report=partial(_show_progress, bar))
            for folder, result in results.items():
                if result.resumed_from is not None and is_first():
                    print(f"{spaces[folder][0].name}: went on from step {result.resumed_from}")


def _show_progress(bar: Bar, progress: TrainingProgress) -> None:
    bar.advance_to(progress.step, f"loss {progress.loss:.3f}")


def _closing_lines(folder: Path) -> str:
    """Returns the content of a search space's checkpoint, and the decisions of the training."""
    checkpoint = load_fitted(folder, with_params=False)
    parts = [f"{checkpoint.name} fitted to {len(checkpoint.facts['tasks'])} tasks"] if has_fitted(folder) else []
    companion = METHODS[checkpoint.name].companion
    facts = checkpoint.facts if companion is None else load_fitted(folder, ensemble=True, with_params=False).facts
    if "losses" in facts:
        step, loss, validation = facts["losses"]
        parts += [f"{step} steps{'' if companion is None else f' of {companion}'}", f"training loss {loss:.3f}"]
        parts += [] if validation is None else [f"validation loss {validation:.3f}"]
    lines = [f"{checkpoint.space}: {', '.join(parts)}, saved in {folder}"]
    lines += [f"{checkpoint.space}: {name} {reason}" for name, reason in checkpoint.facts.get("decided", {}).items()]
    return "\n".join(lines)
