"""``dre-jax compare``: methods on the same tasks and initial designs, run and reported in one command."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.checks import parse_names, parse_trials
from dre_jax.cli import options
from dre_jax.cli.report import differences, over_spaces, show
from dre_jax.errors import ConfigError, DataError, MethodError
from dre_jax.hpob import timing
from dre_jax.hpob.jobs import Job, check_method, collect, complete_methods, make_jobs, run_jobs
from dre_jax.methods.registry import real_name
from dre_jax.runtime.devices import cores
from dre_jax.runtime.setup import prepare

_AT = (5, 10, 25, 50)


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Run methods on the same tasks and initial designs, and compare them.

    Every method and search space is a job with a result file; rerun an interrupted comparison to resume it.
    """

    data: Annotated[
        list[str], typer.Option(metavar="DIR", help="Folder in HPO-B's layout, or `bundled`; may be repeated.")
    ]
    out: Annotated[Path, typer.Option(help="Folder for results, checkpoints and the report.")]
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Methods, as for `evaluate --method`; the first is the reference."),
    ] = None
    more: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="More methods.")] = None
    space: options.Spaces = None
    split: Annotated[str, typer.Option(help="Tasks to run: test or validation.")] = "test"
    trials: Annotated[int, typer.Option(help="Trials after the initial design.", min=1)] = 50
    seeds: Annotated[str, typer.Option(help="Initial designs of each task.")] = "test0,test1,test2,test3,test4"
    at: Annotated[str | None, typer.Option(help="Trials at which to compare. Default: 5, 10, 25, 50 and the last.")] = (
        None
    )
    seed: options.Seed = 0
    workers: Annotated[int | None, typer.Option(help="Number of processes. Default: one per core.", min=1)] = None
    quiet: options.Quiet = False

    def run(self) -> None:
        """Runs the jobs, and writes the report."""
        prepare()
        names = list(dict.fromkeys(map(real_name, [*(self.methods or []), *(self.more or [])])))
        if not names:
            raise ConfigError("a comparison needs --methods NAME ..., but got none")
        if self.split not in ("test", "validation"):
            raise ConfigError(f"--split must be test or validation, but got {self.split!r}")
        trials = self.trials
        budgets = (*(t for t in _AT if t < trials), trials) if self.at is None else tuple(parse_trials(self.at, "--at"))
        if max(budgets) > trials:
            raise ConfigError(f"--at must be at most --trials {trials}, but got {max(budgets)}")
        for name in names:
            check_method(name)
        jobs = make_jobs(
            names,
            self.data,
            designs=tuple(parse_names(self.seeds, "--seeds")),
            out=self.out,
            spaces=self.space,
            split=self.split,
            trials=trials,
            seed=self.seed,
        )
        failures = run_jobs(jobs, self.workers or cores(), "compare", quiet=self.quiet)
        _report(jobs, budgets, self.out)
        if failures:
            raise MethodError(f"{len(failures)} of {len(jobs)} jobs failed; rerun the command to try them again")


def _report(jobs: Sequence[Job], at: tuple[int, ...], out: Path) -> None:
    """The report of the methods whose jobs have all come to their end, and a table with their times."""
    from dre_jax.report import write_results_and_report

    results = {name: collect(jobs, name) for name in complete_methods(jobs)}
    if not results:
        raise DataError("a comparison needs a method with results on all search spaces, but no method has them")
    first = jobs[0]
    task = {"data": first.data, "space": first.space, "split": first.split}
    times = [timing.suggestion_times(name, out, **task) for name in results]
    summary = write_results_and_report(results, out, at)
    columns = {
        "fit, s": ["-" if method_times.fit is None else f"{method_times.fit:.1f}" for method_times in times],
        "ms a suggestion": [f"{1e3 * method_times.warm:.1f}" for method_times in times],
    }
    heading, table = over_spaces(summary, columns)
    tables = [(f"{summary['title']}\n{heading}", table)]
    if len(results) > 1:
        tables.append(differences(summary, "spaces"))
    show(tables)
    print(f"Times are of {first.label}, measured alone on the machine.")
    print(f"compare: saved in {out}, page {out / 'report' / 'report.html'}")
