"""``dre-jax compare``: methods on the same tasks and initial designs, run and reported in one command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dre_jax.cli import options

if TYPE_CHECKING:
    from dre_jax.data import Results
    from dre_jax.hpob.job_grid import Failure
    from dre_jax.hpob.jobs import Job

_AT = (5, 10, 25, 50)


def compare(
    data: Annotated[
        list[str],
        typer.Option(
            metavar="DIR", help="Folder in HPO-B's layout, or `bundled`; may be repeated.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for results, checkpoints and the report.", show_default=False)],
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Methods, as for `evaluate --method`; the first is the reference."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="More methods.", show_default=False)] = None,
    space: options.Spaces = None,
    split: Annotated[str, typer.Option(help="Tasks to run: test or validation.")] = "test",
    trials: Annotated[int, typer.Option(help="Trials after the initial design.", min=1)] = 50,
    seeds: Annotated[str, typer.Option(help="Initial designs of each task.")] = "test0,test1,test2,test3,test4",
    at: Annotated[
        str | None,
        typer.Option(help="Trials at which to compare. Default: 5, 10, 25, 50 and the last."),
    ] = None,
    seed: options.Seed = 0,
    workers: Annotated[int | None, typer.Option(help="Number of processes. Default: one per core.", min=1)] = None,
    quiet: options.Quiet = False,
) -> None:
    """Run methods on the same tasks and initial designs, and compare them.

    Every method and search space is a job with a result file; rerun an interrupted comparison to resume it.
    """
    from dre_jax.cli.report import trials_of
    from dre_jax.errors import ConfigError, MethodError
    from dre_jax.runtime.devices import cores
    from dre_jax.runtime.setup import prepare

    prepare()
    from dre_jax.hpob.jobs import make_jobs
    from dre_jax.methods.registry import real_name

    names = list(dict.fromkeys(map(real_name, [*(methods or []), *(more or [])])))
    if not names:
        raise ConfigError("a comparison needs --methods NAME ..., but got none")
    if split not in ("test", "validation"):
        raise ConfigError(f"--split must be test or validation, but got {split!r}")
    wanted = tuple(trials_of(at)) if at is not None else (*(t for t in _AT if t < trials), trials)
    if max(wanted) > trials:
        raise ConfigError(f"--at must be at most --trials {trials}, but got {max(wanted)}")
    for name in names:
        check_method(name)
    designs = tuple(options.names(seeds, "--seeds"))
    jobs = make_jobs(names, data, designs=designs, out=out, spaces=space, split=split, trials=trials, seeds=[seed])
    failures = run(jobs, workers or cores(), "compare", quiet=quiet)
    _report(jobs, wanted, out)
    if failures:
        raise MethodError(f"{len(failures)} of {len(jobs)} jobs failed; rerun the command to try them again")


def check_method(method: str) -> None:
    """Refuses a method before anything is run. Raises `ConfigError`, and `MissingExtraError` for a package it needs."""
    from dre_jax.methods import find
    from dre_jax.methods.foreign import host_of, load_class

    host = host_of(method)
    if host is None:
        find(method)
    else:
        load_class(host)()


def run(jobs: Sequence[Job], workers: int, what: str, *, quiet: bool) -> list[Failure]:
    """Does the jobs that are not done, with progress and a line for each failure on standard error."""
    from dre_jax.cli.progress import Bar
    from dre_jax.hpob.job_grid import run_jobs

    progress = run_jobs(jobs, workers)
    past, failures = next(progress)
    with Bar(what, len(jobs), quiet=quiet, start=past, unit="jobs") as bar:
        for past, failures in progress:  # noqa: B007 (the last failures are all of them)
            bar.advance_to(past)
    for failure in failures:
        print(f"dre-jax: failed: {failure}", file=sys.stderr)
    return failures


def finished(jobs: Sequence[Job]) -> list[str]:
    """The methods whose jobs have all come to their end; the others are told of on standard error."""
    from dre_jax.hpob.jobs import finished_methods

    found = []
    for method, (ended, total) in finished_methods(jobs).items():
        if ended == total:
            found.append(str(method))
        else:
            print(f"{method} is left out: finished on {ended} of {total} search spaces", file=sys.stderr)
    return found


def _report(jobs: Sequence[Job], at: tuple[int, ...], out: Path) -> None:
    """The report of the methods whose jobs have all come to their end, and a table with their times."""
    from dre_jax.cli.report import over_spaces, show
    from dre_jax.errors import DataError
    from dre_jax.hpob.jobs import collect
    from dre_jax.hpob.timing import suggestion_times

    found = {name: collect(jobs, name) for name in finished(jobs)}
    if not found:
        raise DataError("a comparison needs a method that was finished on all search spaces, but there is none")
    timed = jobs[0]
    times = [suggestion_times(name, out, data=timed.data, space=timed.space, split=timed.split) for name in found]
    summary = save(found, out, at)
    columns = {
        "fit, s": ["-" if each.fit is None else f"{each.fit:.1f}" for each in times],
        "ms a suggestion": [f"{1e3 * each.warm:.1f}" for each in times],
    }
    heading, table = over_spaces(summary, columns)
    show([(f"{summary['title']}\n{heading}", table)])
    print(f"Times are of {timed.label}, measured alone on the machine.")
    print(f"compare: saved in {out}, page {out / 'report' / 'report.html'}")


def save(results: Mapping[str, Results], out: Path, at: tuple[int, ...], **report: str | None) -> dict[str, Any]:
    """Writes a result file a method and the report of them, `write_report`'s further arguments being given."""
    from dre_jax.data import write_results
    from dre_jax.data.files import make_folder
    from dre_jax.report import write_report

    make_folder(out / "results")
    files = {name: out / "results" / f"{name.replace('/', '-')}.json" for name in results}
    for name, path in files.items():
        write_results(path, results[name])
    return write_report(files, out / "report", at=at, **report)
