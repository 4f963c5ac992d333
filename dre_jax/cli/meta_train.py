"""``dre-jax meta-train``: a checkpoint per search space."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import jax
import typer

from dre_jax.checks import parse_names
from dre_jax.cli import options
from dre_jax.data import SearchSpace, list_spaces, load_space
from dre_jax.data.columns import read_descriptor
from dre_jax.data.raw_columns import fixed_descriptor
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods import find
from dre_jax.methods.checkpoints.fitted import has_ensemble, has_fitted, load_fitted
from dre_jax.methods.checkpoints.meta_training import configure_training, meta_train_ensembles, meta_train_method
from dre_jax.methods.dre.many_spaces import gains_side_by_side
from dre_jax.methods.dre.trainer import TrainingProgress
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint
from dre_jax.methods.entries.settings import parse
from dre_jax.methods.registry import companion_of, register_foreign
from dre_jax.runtime.distributed import wait
from dre_jax.runtime.processes import is_first, share
from dre_jax.runtime.progress import Bar
from dre_jax.search.method import FeatureMethod, Method

if TYPE_CHECKING:
    from dre_jax.tuning.past.readers import PastReader

_BUILT_IN = ("optuna", "csv", "surrogate")
"""Readers with an option of their own, --from-NAME."""

_Tasks = tuple[SearchSpace, dict[str, Any], Callable[[], dict[str, Any]]]
"""A search space, further entries of its checkpoint, and the function of its further arrays."""


@dataclass(frozen=True, kw_only=True)
class MetaTrain(options.OnDevices):
    """Meta-train on past tasks; rerun an interrupted command to resume from the last checkpoint.

    `evaluate --checkpoints`, `suggest --checkpoint` and `tune --surrogate` read the result. Beside the recommended
    method, the command trains the ranking ensemble of `dre`, so that one folder has both methods. Several processes
    divide the search spaces among them.
    """

    out: Annotated[
        Path, typer.Option(help="Checkpoint folder: OUT/SPACE for each search space, OUT itself for past trials.")
    ]
    data: Annotated[Path | None, typer.Option(help="Folder of meta-datasets in HPO-B's v3 layout.")] = None
    from_optuna: Annotated[
        str | None,
        typer.Option(
            metavar="STORAGE", help="Past Optuna studies instead of --data: URL of a database, or path of a journal."
        ),
    ] = None
    from_csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Past trials instead of --data: one row per trial, one column per hyperparameter."
        ),
    ] = None
    from_surrogate: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Past studies that a surrogate of another search space keeps.")
    ] = None
    from_reader: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="READER=SOURCE",
            help="Past trials that your own reader returns: file.py:function or package.module:function.",
        ),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that names the task in FILE; '' for one task. Default: task."),
    ] = None
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column with the value in FILE. Default: value.")
    ] = None
    features: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns in FILE, or user attributes of Optuna studies, that are features of tasks: rows,classes.",
        ),
    ] = None
    direction: Annotated[str | None, typer.Option(help="minimize or maximize the values in FILE.")] = None
    space_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Search space of the past studies or trials, JSON.")
    ] = None
    method: Annotated[str, typer.Option(help="A method with transfer from `dre-jax methods`.")] = "recommended"
    space: options.Spaces = None
    steps: Annotated[int | None, typer.Option(help="Training steps of the ranking ensemble. Default: 5000.", min=1)] = (
        None
    )
    lists_per_step: Annotated[
        int | None, typer.Option(help="Lists that each member draws per step. Default: 1.", min=1)
    ] = None
    evaluate_every: Annotated[
        int | None, typer.Option(help="Steps between two evaluations and checkpoints. Default: 1000.", min=1)
    ] = None
    patience: Annotated[
        int | None, typer.Option(help="Stop after this many evaluations without a better validation loss.", min=1)
    ] = None
    preset: Annotated[
        str | None, typer.Option(help="Preset of the ensemble: default, or paper (the published set-up).")
    ] = None
    settings: options.Settings = None
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Keep past tasks in the host's memory, and send only the rows that the ranking ensemble draws to the "
            "devices. Default: only if the tasks take too much of a device's memory.",
        ),
    ] = None
    mode: Annotated[str, typer.Option(help="HPO-B mode: v3 or v3-train-augmented.")] = "v3"
    columns: options.Columns = "published"
    seed: options.Seed = 0

    def run(self) -> None:
        """Meta-trains on each search space that is this process's."""
        self.prepare()
        methods, source = self._methods(), self._past_source()
        names = ["."] if self.data is None else self.space or list_spaces(self.data, self.mode)
        mine, key = share(names), jax.random.key(self.seed)
        if self.data is not None and len(mine) > 1 and not self.stream and gains_side_by_side():
            spaces = {self.out / name: self._read_space(self.data, name)[:2] for name in mine}
            _train_ensembles(spaces, methods, key, quiet=self.quiet)
        for name in mine:
            data = self._read_past(*source) if source else self._read_space(cast(Path, self.data), name)
            train_space(data[0], methods, key, self.out / name, *data[1:], stream=self.stream, quiet=self.quiet)
        wait()
        if is_first():
            for name in names:
                if name not in mine:
                    print(_closing_lines(self.out / name))

    def _methods(self) -> dict[str, Method]:
        """Returns the method and its companion, which is first, since it says how far it is."""
        entry = find(self.method)
        register_foreign(entry)
        names = ("steps", "lists_per_step", "patience", "evaluate_every")
        training: dict[str, Any] = {"preset": self.preset, "training": {name: getattr(self, name) for name in names}}
        method = configure_training(entry, parse(self.settings or []), **training)
        companion = {} if (name := entry.companion) is None else {name: configure_training(find(name), {}, **training)}
        return {**companion, entry.name: method}

    def _past_source(self) -> tuple[PastReader, str, dict[str, Any]] | None:
        """Returns a reader of past tasks, its source and its options; None for tables in HPO-B's layout.

        Raises `ConfigError` for options that do not name one source of past tasks, or do not go with it.
        """
        sources = {"data": self.data, **{f"from-{name}": getattr(self, f"from_{name}") for name in _BUILT_IN}}
        sources["from"] = self.from_reader
        source_options = {f"--{name}": str(source) for name, source in sources.items() if source is not None}
        if len(source_options) != 1:
            rule = f"past tasks come from one of {', '.join(f'--{name}' for name in sources)}"
            raise ConfigError(f"{rule}, but got {' and '.join(source_options) or 'none'}")
        ((label, source),) = source_options.items()
        further = {"direction": self.direction, "task": self.task, "value": self.value}
        more: dict[str, Any] = {name: text or None for name, text in further.items() if text is not None}
        if self.features is not None:
            more["features"] = parse_names(self.features, "--features")
        if label == "--data" and not more and self.space_file is None:
            return None
        from dre_jax.tuning.past.readers import check_options, find_reader

        if label == "--data":
            check_options(lambda source, space: None, label, more)  # it takes none
            readers = [f"--{name}" for name in sources if name != "data"]
            raise ConfigError(f"--space-file needs {', '.join(readers[:-1])} or {readers[-1]}, but got --data")
        name, _, source = source.partition("=") if label == "--from" else (label.removeprefix("--from-"), "", source)
        reader = find_reader(name)
        check_options(reader, label, more)
        if self.space_file is None or self.space:
            option = "--space" if self.space else "none"
            raise ConfigError(f"{label} takes the search space from --space-file, but got {option}")
        return reader, source, more

    def _read_space(self, data: Path, name: str) -> _Tasks:
        tasks = load_space(data, name, self.mode, columns=self.columns)
        descriptor = read_descriptor(data, name)
        if descriptor is None:
            return tasks, {}, dict
        descriptor = fixed_descriptor(name, descriptor) if self.columns == "fixed" else descriptor
        return tasks, {"descriptor": descriptor}, dict

    def _read_past(self, reader: PastReader, source: str, more: Mapping[str, Any]) -> _Tasks:
        """Returns past studies or trials; prints exclusions to standard error."""
        from dre_jax.tuning import read_space
        from dre_jax.tuning.past.studies import keep_studies
        from dre_jax.tuning.past.tasks import describe_changes, start_design
        from dre_jax.tuning.surrogates.new_task import unused_features
        from dre_jax.tuning.surrogates.saved_surrogate import SPACE_NAME, checkpoint_extra

        past = reader(source, read_space(cast(Path, self.space_file)), **more)
        for exclusion in past.exclusions:
            print(f"dre-jax: left out: {exclusion}", file=sys.stderr)
        if changes := describe_changes(past):
            print(f"dre-jax: {changes}", file=sys.stderr)
        if past.features is not None and not isinstance(find(self.method).default, FeatureMethod):
            reason = f"{self.method} does not use any"
            print(f"dre-jax: {unused_features(past.features.types, reason)}", file=sys.stderr)
        if not past.tasks:
            raise DataError(f"at least one past task must fit {self.space_file}, but none does")
        start, names = start_design(past, None, self.seed), list(past.tasks)
        extra = checkpoint_extra(
            past.space,
            start,
            past.direction,
            past.metric,
            names,
            constrained=past.constrained,
            features=past.features,
        )
        tasks = past.search_space(SPACE_NAME)
        return tasks, extra, lambda: keep_studies(tasks, jax.random.key(self.seed)).arrays()


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
    companion = companion_of(checkpoint.name)
    facts = checkpoint.facts if companion is None else load_fitted(folder, ensemble=True, with_params=False).facts
    if "losses" in facts:
        step, loss, validation = facts["losses"]
        parts += [f"{step} steps{'' if companion is None else f' of {companion}'}", f"training loss {loss:.3f}"]
        parts += [] if validation is None else [f"validation loss {validation:.3f}"]
    lines = [f"{checkpoint.space}: {', '.join(parts)}, saved in {folder}"]
    lines += [f"{checkpoint.space}: {name} {reason}" for name, reason in checkpoint.facts.get("decided", {}).items()]
    return "\n".join(lines)
