"""``dre-jax tune``: runs a command per trial."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated

import typer

from dre_jax.cli import options
from dre_jax.data.files import make_folder
from dre_jax.errors import ConfigError, import_extra
from dre_jax.runtime.reports import listening

if TYPE_CHECKING:
    from dre_jax.tuning import Surrogate, Trial
    from dre_jax.tuning.command.runner import FileOptimizer
    from dre_jax.tuning.command.shared_study import SharedStudy

_MAX_STUDIES = 5
"""Maximum number of past studies in the closing lines."""


def tune(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND",
            help="After `--`. {lr} stands for a hyperparameter, {trial} for the trial's number, {worker} for a number "
            "below --workers (of a GPU, say), {params} for all hyperparameters as JSON, {{ for a brace.",
            show_default=False,
        ),
    ],
    space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Search space, JSON. Default: that of --pretrained.", show_default=False),
    ] = None,
    trials: Annotated[int, typer.Option(help="Number of trials, earlier ones of the study included.", min=1)] = 30,
    workers: Annotated[int, typer.Option(help="Number of commands that run in parallel.", min=1)] = 1,
    timeout: Annotated[
        float | None,
        typer.Option(help="Time limit in seconds; a command that exceeds it is ended, and its trial fails."),
    ] = None,
    timeout_total: Annotated[
        float | None,
        typer.Option(help="Seconds after which no command starts; those that run are completed.", show_default=False),
    ] = None,
    stop_when_gain_below: Annotated[
        float | None,
        typer.Option(
            metavar="GAIN",
            help="Stop when a trial is expected to improve the best value by less, ten times in a row.",
            show_default=False,
        ),
    ] = None,
    surrogate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|none",
            help="Folder of `Surrogate.save` or `meta-train`. Default: none for a new study. A study with a surrogate "
            "needs its surrogate again, or `none` to continue without one. With several metrics, one for each.",
            show_default=False,
        ),
    ] = None,
    pretrained: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Start from the shipped surrogate of a model (svc, xgboost, ...; `dre-jax info pretrained` lists "
            "them) and of --metric.",
            show_default=False,
        ),
    ] = None,
    study: Annotated[Path, typer.Option(help="Study file, kept up to date and resumed from.")] = Path("study.json"),
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Storage of Optuna that several processes share, on several machines: the address of a database "
            "(sqlite:///tune.db) or the path of a journal file. --study is then the study's name.",
            show_default=False,
        ),
    ] = None,
    silence: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With --storage: seconds without a sign of life of this process, after which others run its trials "
            "again. Default: 600.",
            show_default=False,
        ),
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(
            help="minimize or maximize; once, or once for each metric. Default for a new study: minimize.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the value in the output: the last `NAME: number`, `NAME=number` or key of a JSON object. "
            "Default: a number alone on a line, `value` in a JSON object, or the only `name: number`. Repeat it for "
            "several objectives.",
            show_default=False,
        ),
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the output of trial 7 in DIR/7.out and DIR/7.err.")
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help=r"Lines that report a step and a value, as 'step (\d+): loss (\S+)': a command that will hardly "
            "become the best is ended.",
            show_default=False,
        ),
    ] = None,
    past_curves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Curves of past studies for --curve: CSV with the columns task, trial, step, value.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the study as one HTML page at the end.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of a new study. Default: 0.", min=0, max=2**32 - 1, show_default=False)
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Tune a command: run it with suggested configurations, and read the value that it prints.

    The value is a number alone on a line, `value` in a JSON object, or the only `name: number`; --metric names one of
    several. Output with several values ends the command. A second --metric makes a study of several objectives, which
    ends with the best trade-offs. A trial fails if the command exits with a status other than 0, prints no value, or
    exceeds --timeout. An inactive hyperparameter is left out together with its flag. Rerun the command to resume an
    interrupted study.
    """
    from dre_jax.cli.trials import TrialsDisplay, signals_as_interrupts
    from dre_jax.tuning import PastCurves, Surrogate, read_space
    from dre_jax.tuning.command.runner import run_trials, study_in_file
    from dre_jax.tuning.command.templates import parse
    from dre_jax.tuning.past.optuna_studies import address_without_password
    from dre_jax.tuning.pretrained.surrogates import pretrained_study

    metrics, several = tuple(metric or ()), len(metric or ()) > 1
    if curve is not None and storage is not None:
        raise ConfigError("a study that processes share stops no command by its curve: pass --curve without --storage")
    if silence is not None and storage is None:
        raise ConfigError("--silence goes with --storage, but got a study file")
    if several and (pretrained or curve or past_curves):
        raise ConfigError("several metrics have no --pretrained, --curve or --past-curves: pass --metric once")
    surrogates: Surrogate | Mapping[str, Surrogate | None] | EllipsisType | None = ...
    if pretrained is not None and surrogate is not None:
        raise ConfigError("a study has one surrogate: pass --surrogate or --pretrained")
    if pretrained is not None:
        search_space, surrogates = pretrained_study(
            pretrained, metrics[0] if metrics else None, None if space is None else read_space(space)
        )
    elif space is not None:
        search_space = read_space(space)
    else:
        raise ConfigError("a search space is needed: pass --space FILE or --pretrained MODEL")
    template = parse(command, search_space)
    if report is not None:
        import_extra("optuna", "optuna", "optuna")  # before the trials rather than after them
        make_folder(report.parent)
        if report.is_dir():
            raise ConfigError(f"--report must name a file, but {report} is a folder")
    if surrogate:
        folders = _by_metric("surrogate", surrogate, metrics)
        surrogates = {
            name: None if one in (None, "none") else Surrogate.load(one, space=search_space)
            for name, one in folders.items()
        }
    directions = _by_metric("direction", direction or [None], metrics)
    optimizer: FileOptimizer | SharedStudy
    with contextlib.ExitStack() as stack:
        if storage is None:
            file_study = study_in_file(study, search_space, surrogates, directions=directions, seed=seed)
            optimizer = stack.enter_context(file_study)
            if past_curves is not None:
                optimizer.set_past_curves(PastCurves.from_csv(past_curves, direction=optimizer.direction))
        else:
            import_extra("optuna", "optuna", "optuna")
            from dre_jax.tuning.command.shared_study import SharedStudy
            from dre_jax.tuning.command.worker_identity import SILENCE

            past = None if surrogates is ... else surrogates
            optimizer = SharedStudy(
                storage,
                study.stem,
                search_space,
                past,
                directions=directions,
                seed=seed,
                silence=SILENCE if silence is None else silence,
            )
        progress = run_trials(
            optimizer,
            template,
            trials=trials,
            workers=workers,
            timeout=timeout,
            total_timeout=timeout_total,
            stop_when_gain_below=stop_when_gain_below,
            metrics=metrics,
            logs=logs,
            curve=curve,
        )
        with (
            signals_as_interrupts(),
            listening(lambda _: None) if quiet else contextlib.nullcontext(),
            TrialsDisplay(optimizer, trials, metrics=metrics, quiet=quiet) as display,
            contextlib.closing(progress),
        ):
            for state in progress:
                display.show(state)
        best = display.best
        if stop_when_gain_below is not None and optimizer.gain_is_below(stop_when_gain_below):
            print(f"tune: stopped, as a trial is expected to gain less than {stop_when_gain_below:g}")
        _print_best(best, optimizer)
        _print_sources(optimizer)
        place = study if storage is None else address_without_password(storage)
        named_directions = optimizer.named_directions
        if report is not None:
            from dre_jax.tuning.figures.study import write_study_page

            write_study_page(report, study.stem, optimizer)
            print(f"tune: page {report}")
        # The study's whole name, so that no picture of the user's own is replaced.
        picture = study.with_name(f"{study.name}.png")
        try:
            from dre_jax.report.style import write
            from dre_jax.tuning.figures.trials import plot_front, plot_history

            if several:
                write(plot_front(optimizer.trials, {trial.number for trial in best}, named_directions), picture)
            else:
                write(plot_history(optimizer.trials, named_directions[""]), picture)
        except Exception as error:  # of the file system or matplotlib: the study is complete without a picture
            print(f"tune: saved in {place}")
            print(f"tune: no picture: {error}", file=sys.stderr)
        else:
            print(f"tune: saved in {place}, picture {picture}")


def _by_metric(option: str, texts: Sequence[str | None], metrics: Sequence[str]) -> dict[str, str | None]:
    """Returns the text of an option for each metric, the only direction for all; a single value has no name."""
    names = metrics if len(metrics) > 1 else ("",)
    texts = list(texts) * len(names) if option == "direction" and len(texts) == 1 else texts
    if len(texts) != len(names) or len(set(names)) < len(names):
        n = f"--{option} {len(texts)} times" if len(texts) != len(names) else f"the metrics {', '.join(metrics)}"
        raise ConfigError(f"each metric needs one name and one --{option}, but got {n} for {len(names)}")
    return dict(zip(names, texts, strict=True))


def _print_best(best: Sequence[Trial], optimizer: FileOptimizer | SharedStudy) -> None:
    """Prints the best trial, or the front."""
    from dre_jax.cli.trials import format_json, format_value

    if len(optimizer.named_directions) > 1:
        print(f"front of {len(optimizer.trials)} trials: {len(best)}")
        for trial in best:
            print(f"{format_value(trial)} (trial {trial.number}): {format_json(trial.params)}")
    else:
        print(f"best of {len(optimizer.trials)} trials: {best[0].value} (trial {best[0].number})")
        print(format_json(best[0].params))


def _print_sources(optimizer: FileOptimizer | SharedStudy) -> None:
    """Prints how far the past studies of each surrogate agree with the trials."""
    for name, surrogate in optimizer.named_surrogates.items():
        if surrogate is not None and surrogate.studies is not None:
            trials = [trial.with_objective(name) for trial in optimizer.trials]
            lines = surrogate.sources(trials, direction=optimizer.named_directions[name]).lines(_MAX_STUDIES)
            print("\n".join([f"past of {name}:", *lines] if name else lines))
