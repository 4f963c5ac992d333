"""The report as one self-contained HTML page: tables, figures embedded, nothing fetched, no script."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data.files import write_text
from dre_jax.report import page_tables
from dre_jax.report.comparison import Comparison
from dre_jax.report.figures import PageFigure, page_figure
from dre_jax.report.page_tables import number
from dre_jax.report.statistics import Significance, Significances

UNITS = {
    "tasks": "Over tasks: one observation a task, the mean of its initial designs",
    "runs": "Pooled over runs, as HPO-B does: runs of a task are not independent, so these p-values are too small",
}


def write_page(
    path: Path,
    title: str,
    comparison: Comparison,
    significances: Significances,
    figures: Mapping[str, Path],
    summary: Mapping[str, Any],
) -> None:
    """Writes the page of a comparison.

    ``significances`` are by unit ("tasks", "runs") and trial, and figures are PNG files by name, as `draw_all` returns
    them. ``summary`` is the content of `summary.json`; the page reads the reference of wins and losses and the sources
    of the results from it.

    Raises `DataError` if a figure cannot be read or the page cannot be written.
    """
    at = sorted(significances["tasks"])
    several, reference = len(comparison.methods) > 1, summary["win_tie_loss"]["reference"]

    def embed_figures(names: Sequence[str]) -> list[PageFigure]:
        return [page_figure(name, figures[name], comparison) for name in names if name in figures]

    page = {
        "title": title,
        "facts": comparison.counts,
        "alarms": [f"{line[0].upper()}{line[1:]}." for line in comparison.left_out()],
        "findings": [_finding(comparison, significances, trial) for trial in at] if several else [],
        "curves": embed_figures(("rank", "regret")),
        "averages": [page_tables.averages(comparison, at, over) for over in ("runs", "spaces")],
        "diagrams": embed_figures([name for name in figures if name.startswith("cd-")]),
        "units": [_unit(comparison, unit, tests) for unit, tests in significances.items()] if several else [],
        "differences": page_tables.differences(comparison, reference, at) if several else None,
        "wins": page_tables.wins(comparison, reference, at) if several else None,
        "grids": embed_figures(("rank-spaces", "regret-spaces")),
        "spaces": [page_tables.spaces(comparison, trial) for trial in at],
        "files": _files(summary["files"]),
        "versions": ", ".join(f"{name} {version}" for name, version in summary["versions"].items()),
    }
    write_text(path, render("report.html.jinja", page))


def render(template: str, page: Mapping[str, Any]) -> str:
    """Returns a page by one of the templates, with the style of all."""
    return str(_template(template).render(css=_resource("report.css"), **page))


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, StrictUndefined

    # Names come from files, so everything but the page's own style is escaped.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_resource(name))


def _resource(name: str) -> str:
    return (resources.files("dre_jax.report") / "templates" / name).read_text(encoding="utf-8")


def _finding(comparison: Comparison, significances: Significances, trial: int) -> str:
    """A sentence on the best method after some trials, and on those that do not differ significantly from it."""
    rank, regret = comparison.average_rank()[:, trial], comparison.average_regret()[:, trial]
    first, least = int(np.argmin(rank)), int(np.argmin(regret))
    best, lowest = comparison.methods[first], comparison.methods[least]
    text = f"After {trial} trials {best} has the best average rank, {number(float(rank[first]), 2)}, and "
    text += f"{'also' if best == lowest else lowest} the lowest average regret, {number(float(regret[least]))}."
    tests = significances["tasks"][trial]
    p = tests.wilcoxon_p[tests.methods.index(best)]
    tied = [name for name, value in zip(tests.methods, p, strict=True) if name != best and value > tests.alpha]
    if not tied:
        return f"{text} Over tasks {best} differs significantly from every other method."
    return f"{text} Over tasks {best} does not differ significantly from {', '.join(tied)}."


def _unit(comparison: Comparison, unit: str, tests: Mapping[int, Significance]) -> dict[str, Any]:
    return {
        "title": UNITS[unit],
        "friedman": page_tables.friedman(tests),
        "pairs": [page_tables.pairs(comparison, result) for _, result in sorted(tests.items())],
    }


def _files(files: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sources of the results, one per method."""
    metas = (json.dumps(file["meta"], indent=2, ensure_ascii=False) if file["meta"] else "" for file in files.values())
    return [{"method": method, **files[method], "meta": meta} for method, meta in zip(files, metas, strict=True)]
