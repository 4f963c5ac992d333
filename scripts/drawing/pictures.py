"""The pictures, by name: what each is drawn from and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from drawing.curves import Curve, paint_curves
from drawing.dots import paint_dots
from drawing.tables import with_columns
from drawing.theme import Theme, draw, plain_numbers
from dre_jax.data.files import read_json

if TYPE_CHECKING:
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
    "speed": speed,
}
"""By name; each writes its files from the folder of the pages to another."""
