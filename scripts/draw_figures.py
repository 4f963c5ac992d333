"""Draws pictures of the README and of the site into docs/figures, for light and for dark pages.

    python scripts/draw_figures.py [NAME ...]       # from the stored result and from the tables of the pages
    python scripts/draw_figures.py --regret DIR     # stores what scripts/compare_methods.py left in DIR, then draws

Run it after a table of docs/results has changed; a test says which pictures are older than their numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from one_line import errors_in_one_line

from dre_jax.data import read_results
from dre_jax.data.files import read_json, write_json
from dre_jax.errors import ConfigError, DataError
from dre_jax.report import compare
from dre_jax.report.style import save

DOCS = Path(__file__).parents[1] / "docs"
NAMES = {  # of methods, as a reader knows them
    "hedged-prior": "recommended",
    "dre": "DRE",
    "gp": "Gaussian process",
    "tpe": "TPE",
    "random": "random search",
}
COMMAND = (
    "scripts/compare_methods.py --methods hedged-prior dre tpe gp random --data bundled --designs test0,test1,test2 "
    "--trials 50 --out DIR"
)


def regret_of(folder: Path) -> dict[str, Any]:
    """The mean regret of each method over search spaces, with its standard error, from what COMMAND left in DIR."""
    paths = {name: folder / "results" / f"{name}.json" for name in NAMES}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        raise DataError(f"{folder} must hold what `{COMMAND}` wrote, but lacks results of {', '.join(missing)}")
    comparison = compare({name: read_results(path) for name, path in paths.items()})
    numbers = zip(comparison.average_regret("spaces"), comparison.standard_error("spaces"), strict=True)
    return {
        "command": COMMAND,
        "runs": len(comparison.runs),
        "tasks": len(set(comparison.tasks)),
        "spaces": len(comparison.spaces),
        "methods": {
            name: {"regret": np.round(regret, 5).tolist(), "error": np.round(error, 5).tolist()}
            for name, (regret, error) in zip(comparison.methods, numbers, strict=True)
        },
    }


Series = tuple[float, ...]


class Table(NamedTuple):
    """A Markdown table."""

    section: str
    """The heading above it."""
    heads: list[str]
    rows: list[list[str]]

    def column(self, head: str) -> list[str]:
        """The cells of a column, without the marks of code."""
        if head not in self.heads:
            raise DataError(f"the table of {self.section!r} needs a column {head!r}, but has {', '.join(self.heads)}")
        return [row[self.heads.index(head)].strip("`") for row in self.rows]

    def numbers(self, head: str) -> list[tuple[float, float]]:
        """The cells of a column such as "0.02 ± 0.01": values and errors, 0 without one, NaN where there is none."""
        return [number(cell) for cell in self.column(head)]

    def series(self, quantity: str) -> tuple[list[int], list[tuple[Series, Series]]]:
        """Returns the trials N of the columns "QUANTITY at N", and each row's values and errors there."""
        heads = [head for head in self.heads if head.startswith(f"{quantity} at ")]
        by_row = zip(*(self.numbers(head) for head in heads), strict=True)
        rows = [(tuple(value for value, _ in row), tuple(error for _, error in row)) for row in by_row]
        return [int(head.rpartition(" ")[2]) for head in heads], rows


def number(cell: str) -> tuple[float, float]:
    """A value and its error.

    >>> number("0.02 ± 0.01"), number("32.0")
    ((0.02, 0.01), (32.0, 0.0))
    """
    value, _, error = cell.partition("±")
    try:
        return float(value), float(error or 0)
    except ValueError:
        return float("nan"), 0.0


def tables(text: str) -> list[Table]:
    """All tables of a page, in its order."""
    result, section, block = [], "", list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
            continue
        if len(block) > 1 and set(block[1]) <= set("|-: "):
            result.append(Table(section, _cells(block[0]), [_cells(row) for row in block[2:]]))
        block = []
        section = line.lstrip("# ") if line.startswith("#") else section
    return result


def with_columns(text: str, heads: Sequence[str]) -> Table:
    """The first table that has these columns. Raises `DataError` where there is none."""
    for table in tables(text):
        if set(heads) <= set(table.heads):
            return table
    raise DataError(f"the page needs a table with the columns {', '.join(heads)}, but has none")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


class Theme(NamedTuple):
    """Colours that differ between a light and a dark page."""

    name: str
    ink: str
    """Text, axes, and what the others are compared with."""
    faint: str
    """Grids and rules."""
    colours: tuple[str, ...]
    """Series; told apart with any colour vision (Okabe and Ito's, lighter on dark)."""


LIGHT = Theme("light", "#24292f", "#d0d7de", ("#0072B2", "#D55E00", "#009E73", "#A8578C", "#B57D00"))
DARK = Theme("dark", "#e6edf3", "#3d444d", ("#56B4E9", "#FF8C42", "#2CC295", "#E39BC6", "#E6B93C"))
THEMES = (LIGHT, DARK)

INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
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
        save(size, partial(_painted, paint, theme), path)
    return list(paths.values())


def plain_numbers(axis: Axis) -> None:
    """Labels a logarithmic axis with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _painted(paint: Paint, theme: Theme, figure: Figure) -> None:
    own: dict[Any, Any] = dict.fromkeys(INKED, theme.ink)
    matplotlib.rcParams.update(own | PLAIN | {"grid.color": theme.faint})
    figure.patch.set_alpha(0.0)
    paint(figure, theme)


STEP = 0.065  # between names, of the height of the axes


class Curve(NamedTuple):
    """A line; T values over `at`."""

    name: str
    at: Sequence[float]
    value: Sequence[float]
    error: Sequence[float]


def paint_curves(axes: Axes, curves: Sequence[Curve], theme: Theme) -> None:
    """Draws lines on a logarithmic scale with bands of ± error; the first, which stands for the library, is thicker."""
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


Numbers = Sequence[tuple[float, float]]


def paint_dots(
    axes: Axes, rows: Sequence[str], series: Mapping[str, Numbers], theme: Theme, *, bold: Sequence[str] = ()
) -> None:
    """Draws values with bars of ± error: a row for each name, first on top, a colour for each series."""
    heights = np.arange(len(rows))[::-1]
    for colour, (label, numbers) in zip(theme.colours, series.items(), strict=False):
        value, error = np.transpose(numbers)
        low = np.minimum(error, value - 1e-4)
        axes.errorbar(value, heights, xerr=[low, error], fmt="o", color=colour, ms=4.5, lw=1, alpha=0.9, label=label)
    axes.set_yticks(heights, rows)
    for tick, name in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if name in bold else "normal")
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(axis="both", lw=0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def regret(docs: Path, out: Path) -> list[Path]:
    """Regret against trials on tasks that nothing was trained on, five methods."""
    stored = read_json(docs / "figures" / "regret.json")
    curves = []
    for method, numbers in stored["methods"].items():
        trials = range(len(numbers["regret"]))
        curves.append(Curve(NAMES[method], trials, numbers["regret"], numbers["error"]))
    return _draw_curves(out, "regret", curves, "trials after five at random")


def _draw_curves(out: Path, name: str, curves: Sequence[Curve], at: str) -> list[Path]:
    """One panel of curves of regret."""

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        paint_curves(axes, curves, theme)
        axes.set_xlabel(at)
        axes.set_ylabel(REGRET)

    return draw(out, name, (7.2, 3.5), paint)


def budgets(name: str, page: str, at: Sequence[int], docs: Path, out: Path) -> list[Path]:
    """The regret of each method of a page's table after so many trials."""
    table = with_columns((docs / page).read_text(), ["method", *(f"regret at {t}" for t in at)])

    def paint(figure: Figure, theme: Theme) -> None:
        axes = figure.add_subplot()
        series = {f"{t} trials": table.numbers(f"regret at {t}") for t in at}
        paint_dots(axes, table.column("method"), series, theme, bold=("hedged-prior", "dre"))
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        axes.set_xlabel(REGRET)
        figure.legend(loc="outside upper center", ncols=len(at))

    return draw(out, name, (7.2, 1.1 + 0.21 * len(table.rows)), paint)


def live(docs: Path, out: Path) -> list[Path]:
    """Regret on live functions over trials, with pasts of one study to twenty and without."""
    table = with_columns((docs / "results" / "live.md").read_text(), ["past", "tuner"])
    at, rows = table.series("regret")
    regret = dict(zip(zip(table.column("past"), table.column("tuner"), strict=True), rows, strict=True))
    curves = [Curve(name, at, regret[key][0], [0.0] * len(at)) for key, name in LIVE.items()]
    return _draw_curves(out, "live", curves, "trials")


def pretrained(docs: Path, out: Path) -> list[Path]:
    """Regret on live models over trials, with a surrogate that ships and without."""
    table = with_columns((docs / "results" / "pretrained.md").read_text(), ["tuner", "objectives"])
    at, rows = table.series("regret")
    regret = dict(zip(table.column("tuner"), rows, strict=True))
    curves = [Curve(name, at, *regret[key]) for key, name in PRETRAINED.items()]
    return _draw_curves(out, "pretrained", curves, "trials")


def speed(docs: Path, out: Path) -> list[Path]:
    """How many times as fast as PyTorch, the published code and the best that could be written."""
    table = with_columns((docs / "results" / "performance.md").read_text(), ["row", "x eager", "x best"])
    names = table.column("row")
    rows = [names.index(name) for name in SPEED]
    series = {label: [table.numbers(head)[i] for i in rows] for label, head in PEERS.items()}

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
PRETRAINED = {
    "pretrained": "shipped surrogate",
    "gp": "Gaussian process",
    "tpe": "Optuna's TPE",
    "random": "random search",
    "default": "the model's defaults",
}
REGRET = "mean regret, lower is better"
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
    "recommended": partial(budgets, "recommended", "results/recommended.md", (5, 10, 25)),
    "methods": partial(budgets, "methods", "results/methods.md", (10, 25, 50)),
    "losses": partial(budgets, "losses", "results/losses.md", (10, 25, 50)),
    "live": live,
    "pretrained": pretrained,
    "speed": speed,
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
