"""The pictures, by name: what each is drawn from and how."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from drawing.curves import Curve, paint_curves
from drawing.dots import paint_dots
from drawing.stored import read
from drawing.tables import Table, of_section, tables, with_columns
from drawing.theme import Theme, draw, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {  # of methods, as a reader knows them
    "hedged-prior": "recommended",
    "dre": "DRE",
    "gp": "Gaussian process",
    "tpe": "TPE",
    "random": "random search",
}


def regret(docs: Path, out: Path) -> list[Path]:
    """Regret against trials on tasks that nothing was trained on, five methods."""
    stored = read(docs / "figures" / "regret.json")
    curves = []
    for method, numbers in stored["methods"].items():
        trials = range(len(numbers["regret"]))
        curves.append(Curve(NAMES[method], trials, numbers["regret"], numbers["error"]))

    labels = "trials after five at random", "mean regret, lower is better"
    return _draw_curves(out, "regret", (7.2, 3.5), curves, labels, log=True)


def _draw_curves(
    out: Path, name: str, size: tuple[float, float], curves: Sequence[Curve], labels: tuple[str, str], *, log: bool
) -> list[Path]:
    """One panel of curves; labels of the horizontal and of the vertical axis."""

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        paint_curves(axes, curves, theme, log=log)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])

    return draw(out, name, size, paint)


def sinusoid(docs: Path, out: Path) -> list[Path]:
    """A task, the scores that ten members give, and the ranks that these scores make."""
    stored = read(docs / "figures" / "sinusoid.json")
    scores, ranks = (np.array(stored[kind], float) for kind in ("scores", "ranks"))
    ranked = ~np.isnan(ranks).any(axis=0)  # candidates and the incumbent
    grid = np.linspace(-10.0, 10.0, 201)
    x, ranks = grid[ranked], ranks[:, ranked]
    rows, chosen, y = stored["rows"], stored["chosen"], np.sin((grid + np.pi) / 2.0)

    def paint(figure: Figure, theme: Theme) -> None:
        task, by_score, by_rank = figure.subplots(1, 3)
        task.plot(grid, y, color=theme.ink, lw=1.2)
        task.plot(grid[rows], y[rows], "o", color=theme.colours[0], ms=6, label="evaluated")
        task.plot(grid[chosen], y[chosen], "*", color=theme.colours[1], ms=12, label="next")
        task.set_ylim(-1.1, 1.75)
        task.legend(loc="upper left", ncols=2, fontsize=8, handletextpad=0.3, columnspacing=1.0)
        task.set(title="a task", ylabel="response, higher is better")
        by_score.plot(grid, scores.T, color=theme.ink, lw=0.9, alpha=0.6)
        by_score.set(title="scores of ten members", ylabel="score")
        by_rank.plot(x, ranks.T, color=theme.ink, lw=0.7, alpha=0.35)
        mean, deviation = ranks.mean(axis=0), ranks.std(axis=0)
        by_rank.fill_between(
            x, np.maximum(mean - deviation, 1), mean + deviation, color=theme.colours[0], alpha=0.25, lw=0
        )
        by_rank.plot(x, mean, color=theme.colours[0], lw=2, label="mean")
        by_rank.set(title="their ranks, mean and deviation", ylabel="rank, 1 is the best")
        by_rank.invert_yaxis()
        for axes in (task, by_score, by_rank):
            axes.axvline(grid[chosen], color=theme.colours[1], lw=1, ls="--", zorder=0)
            axes.set_xlabel("x")
            axes.title.set_size(9.5)

    return draw(out, "sinusoid", (9.6, 2.9), paint)


def budgets(name: str, page: str, at: Sequence[int], docs: Path, out: Path) -> list[Path]:
    """The regret of each method of a page's table after so many trials."""
    table = with_columns((docs / page).read_text(), ["method", *(f"regret at {t}" for t in at)])

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        _paint_regret(axes, table, "method", at, theme)
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        axes.set_xlabel(REGRET)
        figure.legend(loc="outside upper center", ncols=len(at))

    return draw(out, name, (7.2, 1.1 + 0.21 * len(table.rows)), paint)


def studies(name: str, page: str, columns: int, at: Sequence[int], docs: Path, out: Path) -> list[Path]:
    """The regret of the variants of each choice that a page has a table of, a panel a choice."""
    found = [table for table in tables((docs / page).read_text()) if table.heads[0] == "variant"]
    rows = [found[i : i + columns] for i in range(0, len(found), columns)]
    heights = [max(len(table.rows) for table in row) + 3.2 for row in rows]

    def paint(figure: Figure, theme: Theme) -> None:
        grid = figure.subplots(len(rows), columns, squeeze=False, sharex=True, height_ratios=heights)
        for axes in grid.flat[len(found) :]:
            axes.set_visible(False)
        for axes, table in zip(grid.flat, found, strict=False):
            _paint_regret(axes, table, "variant", at, theme)
            axes.set_title(textwrap.fill(table.section, 80 // columns), fontsize=9)
            axes.tick_params(axis="x", labelbottom=True)
        figure.supxlabel(REGRET, fontsize=9)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(at))

    return draw(out, name, (max(7.2, 4.6 * columns), 0.19 * sum(heights)), paint)


def _paint_regret(axes: Axes, table: Table, first: str, at: Sequence[int], theme: Theme) -> None:
    series = {f"{t} trials": table.numbers(f"regret at {t}") for t in at}
    paint_dots(axes, table.column(first), series, theme, bold=("hedged-prior", "dre", "the library's"))


def misled(docs: Path, out: Path) -> list[Path]:
    """Regret on test tasks whose responses are reversed or permuted, for methods that learned from the true past."""
    table = of_section((docs / "results" / "recommended.md").read_text(), "Where the past misleads")
    at, rows = table.series("regret")
    panels: dict[str, list[Curve]] = {}
    for responses, method, row in zip(table.column("responses"), table.column("method"), rows, strict=True):
        kind = responses or list(panels)[-1]
        panels.setdefault(kind, []).append(Curve(NAMES.get(method, method), at, *row))

    def paint(figure: Figure, theme: Theme) -> None:
        grid = figure.subplots(1, 2, sharey=True)
        for axes, (kind, curves) in zip(grid, panels.items(), strict=True):
            paint_curves(axes, curves, theme, log=True, names=False)
            axes.set_title(f"responses {kind}", fontsize=9.5)
            axes.set_xlabel("trials")
            handles = axes.get_legend_handles_labels()
        grid[0].set_ylim(bottom=0.5 * min(min(curve.value) for curves in panels.values() for curve in curves))
        figure.supylabel("mean regret, lower is better", fontsize=9)
        figure.legend(*handles, loc="outside lower center", ncols=len(panels[kind]))

    return draw(out, "misled", (7.6, 3.3), paint)


def live(docs: Path, out: Path) -> list[Path]:
    """Regret on live functions over trials, with pasts of one study to twenty and without."""
    table = with_columns((docs / "results" / "live.md").read_text(), ["past", "tuner"])
    at, rows = table.series("regret")
    regret = dict(zip(zip(table.column("past"), table.column("tuner"), strict=True), rows, strict=True))
    curves = [Curve(name, at, regret[key][0], [0.0] * len(at)) for key, name in LIVE.items()]
    labels = "trials", "mean regret, lower is better"
    return _draw_curves(out, "live", (7.2, 3.5), curves, labels, log=True)


def tuners(docs: Path, out: Path) -> list[Path]:
    """The best value so far of live models, from nothing, by tuner."""
    table = of_section((docs / "results" / "tuners.md").read_text(), "Live models")
    at, rows = table.series("value")
    curves = [Curve(TUNERS[name], at, *row) for name, row in zip(table.column("tuner"), rows, strict=True)]
    labels = "evaluations", "best value so far, 1 is the best of all"
    return _draw_curves(out, "tuners", (7.2, 3.3), curves, labels, log=False)


def speed(docs: Path, out: Path) -> list[Path]:
    """How many times as fast as PyTorch, the published code and the best that could be written."""
    table = with_columns((docs / "results" / "performance.md").read_text(), ["row", "x eager", "x best"])
    names = table.column("row")
    kept = [names.index(name) for name in SPEED]
    series = {label: [table.numbers(head)[i] for i in kept] for label, head in PEERS.items()}

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        paint_dots(axes, list(SPEED.values()), series, theme)
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        axes.axvline(1.0, color=theme.ink, lw=1)
        axes.set_xlabel("times as fast, on two CPU cores")
        figure.legend(loc="outside upper center", ncols=2)

    return draw(out, "speed", (7.2, 1.1 + 0.25 * len(SPEED)), paint)


LIVE = {
    ("random 20x20", "recommended"): "20 past studies",
    ("random 5x20", "recommended"): "5 past studies",
    ("random 3x20", "recommended"): "3 past studies",
    ("random 1x20", "recommended"): "1 past study",
    ("none", "gp"): "no past",
    ("none", "tpe"): "Optuna's TPE",
}
REGRET = "mean regret, lower is better"
TUNERS = {
    "dre-surrogate": "with past tasks",
    "dre": "without past tasks",
    "tpe": "Optuna's TPE",
    "gp-sampler": "Optuna's GP",
    "random": "random search",
}
PEERS = {"as the published code, eager PyTorch": "x eager", "as the best PyTorch we can write": "x best"}
SPEED = {
    "trial-10-published": "trial after 10 evaluations",
    "trial-30-published": "trial after 30",
    "trial-105-published": "trial after 105",
    "meta-train-step-published": "step of meta-training",
    "runs-50": "50 runs of 100 trials",
}
PICTURES: dict[str, Callable[[Path, Path], list[Path]]] = {
    "regret": regret,
    "sinusoid": sinusoid,
    "recommended": partial(budgets, "recommended", "results/recommended.md", (5, 10, 25)),
    "misled": misled,
    "methods": partial(budgets, "methods", "results/methods.md", (10, 25, 50)),
    "losses": partial(budgets, "losses", "results/losses.md", (10, 25, 50)),
    "defaults": partial(studies, "defaults", "results/defaults.md", 1, (10, 25)),
    "ablations": partial(studies, "ablations", "results/ablations.md", 2, (10, 25)),
    "live": live,
    "tuners": tuners,
    "speed": speed,
}
"""By name; each writes its files from the folder of the pages to another."""
