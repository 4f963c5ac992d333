"""Draws pictures of the README and of the site into docs/figures, for light and for dark pages.

    python scripts/draw_figures.py [NAME ...]       # from the stored result and from the tables of the pages
    python scripts/draw_figures.py --regret DIR     # stores what `dre-jax compare` wrote to DIR, then draws

Run it after a table of docs has changed; a test says which pictures are older than their numbers.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from command_line import errors_in_one_line
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from panels import paint as paint_panels
from rooms import paint as paint_rooms

from dre_jax.data.files import read_json, write_json
from dre_jax.errors import ConfigError, DataError
from dre_jax.report.style import new_figure

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {  # of methods, as a reader knows them
    "hedged-prior": "recommended",
    "dre": "DRE",
    "gp": "Gaussian process",
    "tpe": "TPE",
    "random": "random search",
}
COMMAND = (
    "dre-jax compare --data bundled --methods hedged-prior dre tpe gp random --seeds test0,test1,test2 --trials 50 "
    "--out DIR"
)


def regret_of(folder: Path) -> dict[str, Any]:
    """The mean regret of each method over search spaces, with its standard error, of what COMMAND wrote to DIR."""
    summary = read_json(folder / "report" / "summary.json")
    if missing := [name for name in NAMES if name not in summary["methods"]]:
        raise DataError(f"{folder} must hold what `{COMMAND}` wrote, but lacks results of {', '.join(missing)}")
    means = {"regret": summary["over_spaces"], "error": summary["over_spaces"]["standard_error"]}
    return {
        "command": COMMAND,
        "runs": summary["runs"],
        "tasks": summary["tasks"],
        "spaces": len(summary["spaces"]),
        "methods": {
            name: {what: np.round(of["average_regret"][name], 5).tolist() for what, of in means.items()}
            for name in NAMES
        },
    }


def read_table(page: Path, heads: Sequence[str]) -> pd.DataFrame:
    """The cells of the first table of a page that has these columns. Raises `DataError` where there is none."""
    for block in page.read_text().split("\n\n"):
        rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in block.splitlines()]
        if rows and set(heads) <= set(rows[0]):
            return pd.DataFrame(rows[2:], columns=rows[0])
    raise DataError(f"{page.name} needs a table with the columns {', '.join(heads)}, but has none")


def numbers(cells: Iterable[str]) -> tuple[list[float], list[float]]:
    """The values of cells such as "0.02 ± 0.01", and their errors, 0 without one.

    >>> numbers(["0.02 ± 0.01", "32.0"])
    ([0.02, 32.0], [0.01, 0.0])
    """
    parts = [cell.partition("±") for cell in cells]
    return [float(value) for value, *_ in parts], [float(error or 0) for *_, error in parts]


class Theme(NamedTuple):
    """Colours that differ between a light and a dark page."""

    name: str
    page: str
    """The background of a page."""
    ink: str
    """Text, axes, and what the others are compared with."""
    faint: str
    """Grids and rules."""
    colours: tuple[str, ...]
    """Series; told apart with any colour vision (Okabe and Ito's, lighter on dark)."""


LIGHT = Theme("light", "#ffffff", "#24292f", "#d0d7de", ("#0072B2", "#D55E00", "#009E73", "#A8578C", "#B57D00"))
DARK = Theme("dark", "#131416", "#e6edf3", "#3d444d", ("#56B4E9", "#FF8C42", "#2CC295", "#E39BC6", "#E6B93C"))
THEMES = (LIGHT, DARK)

INK_SETTINGS = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
PLAIN: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text as text: half the size, and readers can search it
}
Paint = Callable[[Figure, Theme], None]


def draw(folder: Path, name: str, size: tuple[float, float], paint: Paint) -> list[Path]:
    """Writes NAME-light.svg and NAME-dark.svg; returns their paths."""
    paths = {theme: folder / f"{name}-{theme.name}.svg" for theme in THEMES}
    for theme, path in paths.items():
        settings = dict.fromkeys(INK_SETTINGS, theme.ink) | PLAIN | {"grid.color": theme.faint}
        with new_figure(size, path, **settings) as figure:
            figure.patch.set_alpha(0.0)
            paint(figure, theme)
    return list(paths.values())


def plain_numbers(axis: Axis) -> None:
    """Labels a logarithmic axis with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


STEP = 0.065  # between names, of the height of the axes


class Curve(NamedTuple):
    """A line; T values over `at`."""

    name: str
    at: Sequence[float]
    value: Sequence[float]
    error: Sequence[float]


def draw_curves(out: Path, name: str, curves: Sequence[Curve], at: str = "trials") -> list[Path]:
    """One panel of regrets on a logarithmic scale with bands of ± error; the first, the library's, is thicker."""

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        colours = dict(zip([curve.name for curve in curves], (*theme.colours, theme.ink), strict=False))
        colours[curves[-1].name] = theme.ink
        for curve in curves:
            value, error = np.asarray(curve.value), np.asarray(curve.error)
            first = curve is curves[0]
            colour = colours[curve.name]
            low, alpha = np.maximum(value - error, 1e-4), 0.22 if first else 0.14
            axes.fill_between(curve.at, low, value + error, color=colour, alpha=alpha, lw=0)
            axes.plot(curve.at, value, color=colour, lw=2.4 if first else 1.5, label=curve.name)
        axes.set_yscale("log")
        axes.set_ylim(bottom=max(1e-4, 0.55 * min(min(curve.value) for curve in curves)))
        plain_numbers(axes.yaxis)
        axes.grid(axis="y", lw=0.6)
        axes.margins(x=0.0)
        _names_at_ends(axes, curves, colours)
        axes.set_xlabel(at)
        axes.set_ylabel(REGRET)

    return draw(out, name, (7.2, 3.5), paint)


def _names_at_ends(axes: Axes, curves: Sequence[Curve], colours: Mapping[str, str]) -> None:
    """Each name beside its line's end, moved apart where they would touch."""
    low, high = np.log(axes.get_ylim())
    place = {curve.name: float((np.log(curve.value[-1]) - low) / (high - low)) for curve in curves}
    order = sorted(place, key=lambda name: place[name])
    for below, name in pairwise(order):
        place[name] = max(place[name], place[below] + STEP)
    place[order[-1]] = min(place[order[-1]], 1.0)
    for above, name in pairwise(reversed(order)):
        place[name] = min(place[name], place[above] - STEP)
    for name, height in place.items():
        weight = "bold" if name == curves[0].name else "normal"
        axes.text(1.015, height, name, transform=axes.transAxes, color=colours[name], va="center", weight=weight)


def draw_dots(
    out: Path, name: str, rows: Sequence[str], series: Mapping[str, Iterable[str]], label: str, step: float
) -> list[Path]:
    """One panel of values with bars of ± error: a row for each name, first on top, a colour for each series."""

    def paint(figure: Figure, theme: Theme) -> None:
        axes, heights = figure.add_subplot(), np.arange(len(rows))[::-1]
        for colour, (legend, cells) in zip(theme.colours, series.items(), strict=False):
            value, error = map(np.asarray, numbers(cells))
            bars = [np.minimum(error, value - 1e-4), error]
            axes.errorbar(value, heights, xerr=bars, fmt="o", color=colour, ms=4.5, lw=1, alpha=0.9, label=legend)
        axes.set_yticks(heights, rows)
        for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
            tick.set_fontweight("bold" if row in BOLD else "normal")
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.grid(axis="both", lw=0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        if label != REGRET:  # a ratio
            axes.axvline(1.0, color=theme.ink, lw=1)
        axes.set_xlabel(label)
        figure.legend(loc="outside upper center", ncols=len(series))

    return draw(out, name, (7.2, 1.1 + step * len(rows)), paint)


def regret(docs: Path, out: Path) -> list[Path]:
    """Regret against trials on tasks that nothing was trained on, five methods."""
    methods = read_json(docs / "figures" / "regret.json")["methods"]
    curves = [
        Curve(NAMES[name], range(len(method["regret"])), method["regret"], method["error"])
        for name, method in methods.items()
    ]
    return draw_curves(out, "regret", curves, "trials after five at random")


def budgets(name: str, page: str, at: Sequence[int], docs: Path, out: Path) -> list[Path]:
    """The regret of each method of a page's table after so many trials."""
    table = read_table(docs / page, ["method", *(f"regret at {t}" for t in at)])
    series = {f"{t} trials": table[f"regret at {t}"] for t in at}
    return draw_dots(out, name, list(table["method"]), series, REGRET, 0.21)


def live(docs: Path, out: Path) -> list[Path]:
    """The regret of tuners on live functions over trials; errors over families of functions would overlap."""
    table = read_table(docs / "results" / "live.md", ["past", "tuner", "regret at 5"]).set_index(["past", "tuner"])
    table = table[[head for head in table if head.startswith("regret at ")]]
    at = [int(head.rpartition(" ")[2]) for head in table]
    rows = [key for key in LIVE if key in table.index]
    return draw_curves(out, "live", [Curve(LIVE[key], at, numbers(table.loc[key])[0], [0.0] * len(at)) for key in rows])


def shares(docs: Path, out: Path) -> list[Path]:
    """The regret of the recommended method with past tasks of several sizes over the share of a table."""
    table = read_table(docs / "results" / "networks.md", ["past tasks", "method", "at 1 %"]).set_index("past tasks")
    at = [1.0, 2.0, 5.0, 10.0]  # later, all have found the best row
    heads = [f"at {share:g} %" for share in at]
    curves = []
    for row, label in SHARES.items():
        value, error = numbers(table.loc[row, heads])
        curves.append(Curve(label, at, np.maximum(value, 1e-4).tolist(), [0.0] * len(error)))
    return draw_curves(out, "shares", curves, "trials, in % of the table")


def fidelity(docs: Path, out: Path) -> list[Path]:
    """The regret of searches that pause or stop trainings over what they have spent."""
    table = read_table(docs / "results" / "fidelity.md", ["search", "after 1", "after 20"]).set_index("search")
    heads = [head for head in table if head.startswith("after ")]
    at = [int(head.rpartition(" ")[2]) for head in heads]
    rows = [row for row in FIDELITY if row in table.index]
    curves = [Curve(FIDELITY[row], at, *numbers(table.loc[row, heads])) for row in rows]
    return draw_curves(out, "fidelity", curves, "epochs spent, in whole trainings")


def speed(docs: Path, out: Path) -> list[Path]:
    """How many times as fast as PyTorch, the published code and the best that could be written."""
    table = read_table(docs / "results" / "speed.md", ["row", *PEERS.values()]).set_index("row").loc[list(SPEED)]
    series = {label: table[head] for label, head in PEERS.items()}
    return draw_dots(out, "speed", list(SPEED.values()), series, "times as fast, on two CPU cores", 0.25)


def growth(docs: Path, out: Path) -> list[Path]:
    """What a call costs, by its number of searches."""
    heads = ["searches", "seconds", "GiB at most"]
    columns = read_table(docs / "how-to" / "many-searches.md", heads)[heads].replace(",", "", regex=True)
    n, *costs = (numbers(columns[head])[0] for head in heads)

    def paint(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(1, 2)
        for axes, cost, head in zip(panels, costs, heads[1:], strict=True):
            axes.plot(n, cost, "o-", color=theme.colours[0], ms=4.5, lw=1.5)
            axes.set_xscale("log")
            axes.set_xlabel("searches in one call")
            axes.set_ylabel(head)
            axes.grid(axis="y", lw=0.6)
        panels[0].set_yscale("log")
        panels[0].minorticks_off()
        panels[1].minorticks_off()
        panels[1].set_ylim(0.0, 1.15 * max(costs[1]))
        for axis in (panels[0].yaxis, panels[0].xaxis, panels[1].xaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))

    return draw(out, "growth", (7.2, 2.6), paint)


def rooms(docs: Path, out: Path) -> list[Path]:
    """The subpackages, their imports, and two ways of data through them."""
    return draw(out, "rooms", (7.2, 6.4), paint_rooms)


def unlike(docs: Path, out: Path) -> list[Path]:
    """Regret against trials on kinds of tasks that are unlike those of machine learning."""
    content = read_json(docs / "figures" / "unlike.json")

    def paint(figure: Figure, theme: Theme) -> None:
        paint_panels(figure, content, theme.colours, theme.ink, theme.faint)

    return draw(out, "unlike", (8.6, 5.4), paint)


BOLD = ("hedged-prior", "dre")
LIVE = {
    ("random 3x20", "recommended"): "3 past studies",
    ("random 1x20", "recommended"): "1 past study",
    ("reversed 5x20", "recommended"): "5 reversed studies",
    ("irrelevant 1x20", "recommended"): "1 unrelated study",
    ("none", "gp-mixture"): "no past",
    ("none", "tpe"): "Optuna's TPE",
    ("none", "random"): "random search",
}
SHARES = {
    "13 tasks of 2,000 rows": "13 past tasks, 2,000 trials",
    "3 of 200": "3 past tasks, 200 trials",
    "3 of 20": "3 past tasks, 20 trials",
    "of XGBoost": "tasks of another model",
    "none": "no past",
}
FIDELITY = {
    "past studies, pauses": "past studies, pauses",
    "past studies, whole trainings": "past studies, no pauses",
    "no past, pauses": "no past, pauses",
    "no past, whole trainings": "no past, no pauses",
    "Optuna, ASHA": "Optuna's ASHA",
}
REGRET = "mean regret, lower is better"
PEERS = {"as the published code, eager PyTorch": "x eager", "as the best PyTorch we can write": "x best"}
SPEED = {
    "trial-10-published": "trial after 10 evaluations",
    "trial-30-published": "trial after 30",
    "trial-105-published": "trial after 105",
    "meta-train-step-published": "step of meta-training",
}
PICTURES: dict[str, Callable[[Path, Path], list[Path]]] = {
    "regret": regret,
    "unlike": unlike,
    "methods": partial(budgets, "methods", "results/tables.md", (10, 25, 50)),
    "networks": partial(budgets, "networks", "results/networks.md", (5, 10, 20)),
    "shares": shares,
    "field": partial(budgets, "field", "results/hpo-b.md", (10, 25, 50)),
    "live": live,
    "fidelity": fidelity,
    "speed": speed,
    "growth": growth,
    "rooms": rooms,
}
"""By name; each writes its files from the folder of the pages to another."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pictures (default: all): {', '.join(PICTURES)}")
    parser.add_argument("--regret", type=Path, metavar="DIR", help=f"what `{COMMAND}` wrote")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in PICTURES]
    if unknown:
        raise ConfigError(f"pictures are {', '.join(PICTURES)}, but got {', '.join(unknown)}")
    if args.regret:
        write_json(DOCS / "figures" / "regret.json", regret_of(args.regret))
    for name in args.names or PICTURES:
        for path in PICTURES[name](DOCS, DOCS / "figures"):
            print(path)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
