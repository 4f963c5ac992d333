"""``dre-jax tune``: runs a command per trial."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre_jax.checks import check_positive
from dre_jax.cli import options
from dre_jax.data.files import check_folder, check_target, make_folder
from dre_jax.errors import ConfigError, import_extra
from dre_jax.runtime.reports import listening

if TYPE_CHECKING:
    from dre_jax.tuning import PastCurves, Space, Trial
    from dre_jax.tuning.command.runner import FileOptimizer
    from dre_jax.tuning.command.shared_study import SharedStudy
    from dre_jax.tuning.command.templates import Template
    from dre_jax.tuning.objectives.criterion import Surrogates

_TRIALS = 30
"""Number of trials by default."""


@dataclass(frozen=True, kw_only=True)
class Tune:
    """Tune a command: run it with suggested configurations, and read the value that it prints.

    The value is a number alone on a line, `value` in a JSON object, or the only `name: number`. If the output has
    several values, name one with --metric. A second --metric makes a study of several objectives, which ends with the
    best trade-offs. A trial fails if the command exits with a status other than 0, prints no value, or exceeds
    --timeout. The argument of an inactive hyperparameter is left out, together with its flag. Rerun the command to
    resume an interrupted study.
    """

    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND",
            help="After `--`. {lr} stands for a hyperparameter, {trial} for the trial's number, {worker} for a number "
            "below --workers (such as that of a GPU), {params} for all hyperparameters as JSON, {{ for a brace.",
        ),
    ]
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Search space, JSON. Default: that of --pretrained.")
    ] = None
    trials: Annotated[
        int | None,
        typer.Option(
            help="Number of trials, including earlier trials of the study. Default: 30, or any number within "
            "--total-budget.",
            min=1,
        ),
    ] = None
    workers: Annotated[int, typer.Option(help="Number of commands that run in parallel.", min=1)] = 1
    timeout: Annotated[
        float | None,
        typer.Option(help="Time limit of a command in seconds. A trial whose command exceeds it fails."),
    ] = None
    timeout_total: Annotated[
        float | None, typer.Option(help="Seconds after which no command starts; running commands are completed.")
    ] = None
    stop_when_gain_below: Annotated[
        float | None,
        typer.Option(
            metavar="GAIN",
            help="Stop after ten trials in a row that are expected to improve the best value by less than GAIN.",
        ),
    ] = None
    fidelity: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=LOWEST:HIGHEST",
            help="Budget of a trial, such as epochs=1:50. The command trains until {budget}; a trial pauses there, and "
            "the best ones are resumed. NAME=RUNG:RUNG:... names all budgets.",
        ),
    ] = None
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --fidelity: {checkpoint} stands for a folder in DIR, the same whenever a training is resumed. "
            "Default: beside the study file; with --storage, name a folder that all processes have.",
        ),
    ] = None
    total_budget: Annotated[
        float | None,
        typer.Option(
            metavar="BUDGET",
            help="With --fidelity: no command starts once all trials have trained for BUDGET, such as 500 epochs.",
        ),
    ] = None
    surrogate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|none",
            help="Folder of `Surrogate.save` or `meta-train`. Default: none for a new study. A study with a surrogate "
            "needs its surrogate again, or `none` to continue without it. With several metrics, pass one for each.",
        ),
    ] = None
    pretrained: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Start from the surrogate that ships for MODEL and --metric. `dre-jax info pretrained` lists the "
            "models, such as svc and xgboost.",
        ),
    ] = None
    features: options.Features = None
    study: Annotated[Path, typer.Option(help="Study file; if it exists, the study resumes.")] = Path("study.json")
    change_space: Annotated[
        bool,
        typer.Option(
            "--change-space",
            help="Continue the study in another --space, with all trials. They have the `default` of a new "
            "hyperparameter. Without this option, a study of another space is refused.",
        ),
    ] = False
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Storage of Optuna that processes share, on one machine or several: the address of a database "
            "(sqlite:///tune.db) or the path of a journal file. --study is then the study's name.",
        ),
    ] = None
    silence: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With --storage: other processes run the trials of this process again after SECONDS without a sign of "
            "life. Default: 600; for short trials, three times the longest trial so far, but at least 30.",
        ),
    ] = None
    direction: Annotated[
        list[str] | None,
        typer.Option(help="minimize or maximize; once, or once for each metric. Default for a new study: minimize."),
    ] = None
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the value in the output: the last `NAME: number`, `NAME=number` or key of a JSON object. "
            "Default: a number alone on a line, `value` in a JSON object, or the only `name: number`. Repeat it for "
            "several objectives."
        ),
    ] = None
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the cost of a trial in the output, as for --metric, such as `seconds: 12`. The search then "
            "prefers trials that gain more per unit of cost.",
        ),
    ] = None
    stderr: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the standard error of the value in the output, as for --metric. A value with a large error "
            "counts less.",
        ),
    ] = None
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save the output of trial 7 in DIR/7.out and DIR/7.err.")
    ] = None
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help=r"Pattern of lines with a step and a value, such as 'step (\d+): loss (\S+)'. A command is ended if "
            "its trial is unlikely to become the best; with --fidelity, none is, and the curves are kept.",
        ),
    ] = None
    past_curves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Curves of past studies for --curve: CSV with the columns task, trial, step, value."
        ),
    ] = None
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the study as one HTML page at the end.")
    ] = None
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACKER",
            help="Write the trials to a tracker: mlflow[=ADDRESS], tensorboard[=DIR] or wandb[=PROJECT]. Repeat it for "
            "several.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of a new study. Default: 0.", min=0, max=2**32 - 1)] = None
    quiet: options.Quiet = False

    def run(self) -> None:
        """Runs the trials, and prints the best ones."""
        from dre_jax.cli.tune_results import print_best, print_sources
        from dre_jax.tuning.command.commands import check_program
        from dre_jax.tuning.command.templates import parse

        self._check()
        self._check_outputs()
        search_space, surrogates = self._space_and_surrogates()
        template = parse(self.command, search_space, has_fidelity=self.fidelity is not None)
        if self.checkpoints is not None and not template.has_checkpoint:
            raise ConfigError("--checkpoints needs {checkpoint} in the command, but it has none")
        if self.storage is not None and template.has_checkpoint and self.checkpoints is None:
            rule = "processes that share a study share its checkpoints"
            raise ConfigError(f"{rule}: pass --checkpoints DIR, a folder that all of them have")
        check_program(template.program)
        with contextlib.ExitStack() as stack:
            optimizer = self._study(search_space, surrogates, stack)
            best = self._run_trials(optimizer, template)
            gain = self.stop_when_gain_below
            if gain is not None and optimizer.gain_is_below(gain):
                print(f"tune: stopped, because a trial is expected to gain less than {gain:g}")
            print_best(best, optimizer)
            if template.has_checkpoint:
                self._print_checkpoints(best, optimizer)
            print_sources(optimizer)
            if self.report is not None:
                from dre_jax.tuning.figures.study import write_study_page

                make_folder(self.report.parent)
                write_study_page(self.report, self.study.stem, optimizer.space, optimizer.trials, optimizer.objectives)
                print(f"tune: page {self.report}")
            self._save_picture(best, optimizer)

    def _check(self) -> None:
        """Raises `ConfigError` for options that do not go together, and for invalid values."""
        from dre_jax.tuning.command.printed_value import curve_pattern
        from dre_jax.tuning.trackers.by_name import check_tracker
        from dre_jax.tuning.trials.objectives import objectives_by_name

        if self.storage is not None:
            self._check_storage()
        elif self.silence is not None:
            raise ConfigError("--silence needs --storage, but got a study file")
        if self.past_curves is not None and self.curve is None:
            raise ConfigError("--past-curves needs --curve, but got none")
        if self.past_curves is not None and self.fidelity is not None:
            raise ConfigError("with --fidelity no trial is stopped by its curve: pass no --past-curves")
        if self.fidelity is None and (self.checkpoints is not None or self.total_budget is not None):
            raise ConfigError("--checkpoints and --total-budget need --fidelity, but got none")
        if len(self._metrics) > 1 and (self.pretrained or self.curve or self.stderr):
            rule = "--pretrained, --curve, --past-curves and --stderr need a single metric"
            raise ConfigError(f"{rule}: pass --metric once")
        if self.pretrained is not None and self.surrogate is not None:
            raise ConfigError("a study has one surrogate: pass --surrogate or --pretrained")
        if self.space is None and self.pretrained is None:
            raise ConfigError("a search space is needed: pass --space FILE or --pretrained MODEL")
        for text in self.track or ():
            check_tracker(text)
        check_positive(timeout=self.timeout, total_timeout=self.timeout_total, silence=self.silence)
        check_positive(total_budget=self.total_budget)
        options.parse_fidelity(self.fidelity)
        objectives_by_name(self._directions)  # raises
        options.parse_features(self.features)
        if self.curve is not None:
            curve_pattern(self.curve)

    def _check_storage(self) -> None:
        """Raises `ConfigError` for options that a study shared by several processes does not have."""
        import_extra("optuna", "optuna", "optuna")
        rule = "a study that processes share"
        if self.change_space:
            raise ConfigError(f"{rule} cannot change its space: pass --change-space with a study file")
        if self.curve is not None or self.past_curves is not None:
            raise ConfigError(f"{rule} cannot stop a trial by its curve: pass --curve without --storage")
        if self.track:
            raise ConfigError(f"{rule} is in Optuna's storage alone: pass --track without --storage")

    def _check_outputs(self) -> None:
        """Raises `DataError` for outputs that cannot be written: before the trials rather than after them."""
        if self.report is not None:
            import_extra("optuna", "optuna", "optuna")
            check_folder(self.report.parent)
            if os.path.exists(self.report):
                check_target(self.report)
        for folder in (self.logs, self.checkpoints):
            if folder is not None:
                check_folder(folder)

    @property
    def _metrics(self) -> tuple[str, ...]:
        return tuple(self.metric or ())

    @property
    def _n_trials(self) -> int | None:
        """The number of trials; None for any number within the total budget."""
        return _TRIALS if self.trials is None and self.total_budget is None else self.trials

    @property
    def _checkpoints(self) -> Path:
        """The folder of the checkpoints of all trainings."""
        default = self.study.with_name(f"{self.study.name}.checkpoints")
        return default if self.checkpoints is None else self.checkpoints

    @property
    def _directions(self) -> dict[str, str | None]:
        return _by_metric("direction", self.direction or [None], self._metrics)

    def _space_and_surrogates(self) -> tuple[Space, Surrogates | EllipsisType]:
        """Returns the search space, and the surrogates; `...` takes those of the study."""
        from dre_jax.tuning import Surrogate, read_space
        from dre_jax.tuning.surrogates.pretrained import pretrained_study

        space = None if self.space is None else read_space(self.space)
        if self.pretrained is not None:
            return pretrained_study(self.pretrained, self._metrics[0] if self._metrics else None, space)
        assert space is not None
        if not self.surrogate:
            return space, ...
        folders = _by_metric("surrogate", self.surrogate, self._metrics)
        return space, {
            name: None if folder in (None, "none") else Surrogate.load(folder, space=space)
            for name, folder in folders.items()
        }

    def _study(
        self, space: Space, surrogates: Surrogates | EllipsisType, stack: contextlib.ExitStack
    ) -> FileOptimizer | SharedStudy:
        """Returns the study in the file, which the stack keeps open, or in the storage."""
        from dre_jax.tuning.command.runner import study_in_file

        features = options.parse_features(self.features)
        if self.storage is None:
            curves = self._read_past_curves()
            in_file = study_in_file(
                self.study,
                space,
                surrogates,
                directions=self._directions,
                seed=self.seed,
                features=features,
                fidelity=options.parse_fidelity(self.fidelity),
                change_space=self.change_space,
            )
            study = stack.enter_context(in_file)
            if curves:
                study.set_past_curves(curves[study.objectives[0].direction])
            return study
        from dre_jax.tuning.command.shared_study import SharedStudy
        from dre_jax.tuning.command.shared_trainings import SharedTrainings

        surrogates = None if surrogates is ... else surrogates
        arguments: Any = (self.storage, self.study.stem, space, surrogates)
        shared_options: Any = {"directions": self._directions, "seed": self.seed, "silence": self.silence}
        shared_options["features"] = features
        fidelity = options.parse_fidelity(self.fidelity)
        if fidelity is None:
            return SharedStudy(*arguments, **shared_options)
        return SharedTrainings(*arguments, fidelity=fidelity, **shared_options)

    def _read_past_curves(self) -> dict[str, PastCurves]:
        """Returns past curves by direction, as the study's is not known before it is opened."""
        from dre_jax.tuning import PastCurves
        from dre_jax.tuning.trials.objectives import DIRECTIONS

        if self.past_curves is None:
            return {}
        return {direction: PastCurves.from_csv(self.past_curves, direction=direction) for direction in DIRECTIONS}

    def _run_trials(self, optimizer: FileOptimizer | SharedStudy, template: Template) -> list[Trial]:
        """Runs the trials with a display of the progress; returns the best ones."""
        from dre_jax.cli.trial_progress import TrialsDisplay, signals_as_interrupts
        from dre_jax.tuning.command.printed_value import PrintedNames
        from dre_jax.tuning.command.runner import run_trials
        from dre_jax.tuning.trackers.by_name import tracking

        progress = run_trials(
            optimizer,
            template,
            trials=self._n_trials,
            workers=self.workers,
            timeout=self.timeout,
            total_timeout=self.timeout_total,
            stop_when_gain_below=self.stop_when_gain_below,
            names=PrintedNames(self._metrics, self.cost, self.stderr),
            logs=self.logs,
            curve=self.curve,
            total_budget=self.total_budget,
            checkpoints=self._checkpoints if template.has_checkpoint else None,
        )
        display = TrialsDisplay(
            optimizer, self._n_trials, total_budget=self.total_budget, metrics=self._metrics, quiet=self.quiet
        )
        with (
            signals_as_interrupts(),
            listening(lambda _: None) if self.quiet else contextlib.nullcontext(),
            tracking(self.track or (), self.study.stem, optimizer) as track,
            display,
            contextlib.closing(progress),
        ):
            for state in progress:
                display.show(state)
                for trial, _ in state.ended_trials:
                    track(trial)
        return display.best

    def _print_checkpoints(self, best: Sequence[Trial], optimizer: FileOptimizer | SharedStudy) -> None:
        """Prints the folder of the best training, or of those of the front."""
        for trial in best:
            of = f" of trial {trial.number}" if len(optimizer.objectives) > 1 else ""
            print(f"tune: checkpoint{of} {self._checkpoints / str(optimizer.training_number(trial))}")

    def _save_picture(self, best: Sequence[Trial], optimizer: FileOptimizer | SharedStudy) -> None:
        """Draws the trials beside the study, and prints where all is saved."""
        from dre_jax.tuning.past.optuna_studies import address_without_password

        location = self.study if self.storage is None else address_without_password(self.storage)
        # The study's whole name, so that no other picture of the user is replaced.
        picture = self.study.with_name(f"{self.study.name}.png")
        try:
            from dre_jax.report.style import write
            from dre_jax.tuning.figures.values import plot_front, plot_history

            objectives = optimizer.objectives
            if len(self._metrics) > 1:
                write(plot_front(optimizer.trials, {trial.number for trial in best}, objectives), picture)
            else:
                write(plot_history(optimizer.trials, objectives[0].direction), picture)
        except Exception as error:  # of the file system or matplotlib: the study is complete without a picture
            print(f"tune: saved in {location}")
            print(f"tune: no picture: {error}", file=sys.stderr)
        else:
            print(f"tune: saved in {location}, picture {picture}")


def _by_metric(option: str, texts: Sequence[str | None], metrics: Sequence[str]) -> dict[str, str | None]:
    """Returns the text of an option for each metric, the only direction for all; a single value is called "value"."""
    from dre_jax.tuning.trials.trial import VALUE

    names = metrics if len(metrics) > 1 else (VALUE,)
    texts = list(texts) * len(names) if option == "direction" and len(texts) == 1 else texts
    if len(texts) != len(names) or len(set(names)) < len(names):
        n = f"--{option} {len(texts)} times" if len(texts) != len(names) else f"the metrics {', '.join(metrics)}"
        raise ConfigError(f"each metric needs one name and one --{option}, but got {n} for {len(names)}")
    return dict(zip(names, texts, strict=True))
