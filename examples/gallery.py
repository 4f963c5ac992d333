"""Shared parts of the examples: options, pictures, and errors in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dre_jax.data.files import make_folder
from dre_jax.errors import DreError
from dre_jax.report.style import line, save


def options(text: str, quick: str) -> argparse.ArgumentParser:
    """The options of every example; what is said of it, and what ``--quick`` leaves out."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=_folder, default=Path(), help="folder of the picture; the current one by default")
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def _folder(text: str) -> Path:
    make_folder(Path(text))
    return Path(text)


def run(main: Callable[[], None]) -> None:
    """Runs an example; errors of the library's, and an interrupt, end it in one line."""
    name = Path(sys.argv[0]).name
    try:
        main()
    except DreError as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")


def print_regret(curves: Mapping[str, np.ndarray], at: tuple[int, ...]) -> None:
    """Mean regret by method, f64[tasks, 1 + trials] each, a line each, after those of so many trials that there are."""
    for name, regrets in curves.items():
        there = [n for n in at if n < regrets.shape[1]]
        means = ", ".join(f"{regrets[:, n].mean():.3f} after {n}" for n in there)
        print(f"{name}: mean regret {means} trials, {len(regrets)} tasks")


def draw_regret(curves: Mapping[str, np.ndarray], path: Path) -> None:
    """Mean regret by method, f64[tasks, 1 + trials] each, with a band of a standard error over tasks."""

    def paint(axes: Axes) -> None:
        for i, (name, regrets) in enumerate(curves.items()):
            numbers, mean = np.arange(regrets.shape[1]), regrets.mean(axis=0)
            error = regrets.std(axis=0, ddof=1) / np.sqrt(len(regrets))
            look = line(i)
            axes.plot(numbers, mean, label=name, markevery=5, **look)
            axes.fill_between(numbers, mean - error, mean + error, color=look["color"], alpha=0.15, linewidth=0)
        axes.set(xlabel="trials after the initial design", ylabel="mean regret (lower is better)", ylim=(0.0, None))
        axes.legend(frameon=False, title="± standard error over tasks")

    draw(paint, path)


def draw_best(curves: Mapping[str, np.ndarray], path: Path, label: str) -> None:
    """Best value so far by method, f64[seeds, trials] each: the mean, and every seed in a thin line."""

    def paint(axes: Axes) -> None:
        for i, (name, values) in enumerate(curves.items()):
            numbers, look = np.arange(1, values.shape[1] + 1), line(i)
            style: dict[str, Any] = {"where": "mid", "color": look["color"], "linestyle": look["linestyle"]}
            axes.step(numbers, values.T, linewidth=0.7, alpha=0.4, **style)
            axes.step(numbers, values.mean(axis=0), linewidth=2.2, label=name, **style)
        means = np.concatenate([values.mean(axis=0) for values in curves.values()])
        margin = 0.08 * np.ptp(means) + 1e-6
        limits = means.min() - margin, means.max() + margin  # a seed's bad first trials may lie outside
        axes.set(xlabel="trials", ylabel=label, ylim=limits)
        axes.legend(frameon=False, title="mean over seeds (thin: each seed)")

    draw(paint, path)


def draw(paint: Callable[[Axes], None], path: Path) -> None:
    """A picture of one panel, whose horizontal axis counts."""

    def whole(figure: Figure) -> None:
        axes = figure.add_subplot()
        paint(axes)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.grid(True, color="#E5E5E5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)

    save((6.4, 3.8), whole, path)
    print(f"picture: {path}")
