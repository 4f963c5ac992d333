"""Writes the report: from result files to numbers, figures and one page."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dre_jax.checks import one_of
from dre_jax.data import Results, write_results
from dre_jax.data.files import make_folder
from dre_jax.errors import ConfigError
from dre_jax.report.comparison import Comparison, compare
from dre_jax.report.result_files import Files, published_files, read_files, warn_of_differences
from dre_jax.report.statistics import significances
from dre_jax.report.summary import summarise, write_summary

DEFAULT_AT = (25, 50, 100)


def write_report(
    files: Files,
    out: str | os.PathLike[str],
    *,
    published: str | os.PathLike[str] | None = None,
    at: Sequence[int] | None = None,
    reference: str | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """Compares methods by their result files and writes the report.

    Writes `summary.json`, `ranks.csv`, `regret.csv`, the figures and `report.html` into `out`; returns what
    `summary.json` holds. Warns with a `DataWarning` of runs and trials that are left out.

    Args:
      files: paths by method, or paths, each of which may be a text "NAME=PATH"; see `read_files`.
      out: folder, created if it is missing.
      published: folder of published traces on HPO-B. Methods with all runs of the files are added; see
        `dre_jax.report.result_files.PUBLISHED`.
      at: trials that tables and tests show; by default 25, 50 and 100 as far as they exist, else the last.
      reference: method whose wins, ties and losses are counted; the first by default.
      title: title of the page and the figures.

    Raises:
      ConfigError, DataError: before anything is written, unless writing itself fails.
    """
    files_by_method = read_files(files)
    if published is not None:
        files_by_method |= published_files(published, {name: file.results for name, file in files_by_method.items()})
    comparison = compare({name: file.results for name, file in files_by_method.items()})
    trials = _trials(at, comparison)
    if reference is not None:
        one_of("the reference", reference, comparison.methods)
    reference = reference or comparison.methods[0]
    methods, runs, tasks, spaces, _ = (f"{number} {word}" for number, word in comparison.counts)
    title = title or f"{methods} on {runs} ({tasks}, {spaces})"
    folder = Path(out)
    make_folder(folder)
    warn_of_differences(files_by_method, comparison)
    tests = significances(comparison, trials)
    summary = summarise(comparison, files_by_method, tests, at=trials, reference=reference, title=title)
    write_summary(summary, folder)
    from dre_jax.report.figures import draw_all
    from dre_jax.report.page import write_page

    figures = draw_all(comparison, tests["tasks"], folder, title)
    write_page(folder / "report.html", title, comparison, tests, figures, summary)
    return summary


def write_results_and_report(results: Mapping[str, Results], out: Path, at: Sequence[int]) -> dict[str, Any]:
    """Writes a result file for each method into `out/results`, and the report into `out/report`.

    Args:
      results: results by method.
      out: folder, created if it is missing.
      at: trials that tables and tests show.

    Returns:
      The content of `summary.json`; see `write_report`.
    """
    make_folder(out / "results")
    files = {name: out / "results" / f"{name.replace('/', '-')}.json" for name in results}
    for name, path in files.items():
        write_results(path, results[name])
    return write_report(files, out / "report", at=at)


def _trials(at: Sequence[int] | None, comparison: Comparison) -> tuple[int, ...]:
    last = comparison.n_trials
    if at is None:
        return tuple(trial for trial in DEFAULT_AT if trial <= last) or (last,)
    if not at:
        raise ConfigError("at least one trial must be looked at, but got none")
    wrong = [trial for trial in at if not 0 <= trial <= last]
    if wrong:
        raise ConfigError(
            f"trials to look at must lie between 0 and {last}, the trials of the shortest run, but got {wrong[0]}"
        )
    return tuple(sorted(set(at)))
