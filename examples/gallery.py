"""Shared parts of the examples: options, reports, pictures of searches, and errors in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dre_jax.data.files import make_folder
from dre_jax.errors import DreError
from dre_jax.report import write_report
from dre_jax.report.style import COLOURS, new_figure


def options(text: str, quick: str) -> argparse.ArgumentParser:
    """Returns a parser with the options of every example; the texts describe the example and its ``--quick``."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=_folder, default=Path(), help="folder of the picture; the current one by default")
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def _folder(text: str) -> Path:
    make_folder(Path(text))
    return Path(text)


def run(main: Callable[[], None]) -> None:
    """Runs an example; an error of the library, or an interrupt, ends it with one line."""
    name = Path(sys.argv[0]).name
    try:
        main()
    except DreError as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")


def report(files: Mapping[str, Path], out: Path, at: Sequence[int]) -> None:
    """Writes the report of result files, and prints each method's mean regret with its standard error over tasks."""
    summary = write_report(files, out, at=at)
    errors = summary["standard_error"]["average_regret"]
    for method, regrets in summary["average_regret"].items():
        text = ", ".join(f"{regrets[n]:.3f} ± {errors[method][n]:.3f} after {n}" for n in summary["at"])
        print(f"{method}: mean regret {text} trials")
    print(f"picture: {out / 'regret.png'}")


def draw_best(at: np.ndarray, curves: Mapping[str, np.ndarray], path: Path, xlabel: str, ylabel: str) -> None:
    """Draws best values so far, f64[seeds, n] by search, at f64[n]: means, and each seed as a thin line."""
    means = np.concatenate([best.mean(axis=0) for best in curves.values()])
    with new_figure((6.4, 3.8), path) as figure:
        axes = figure.add_subplot(xlabel=xlabel, ylabel=ylabel)
        for colour, (name, best) in zip(COLOURS, curves.items(), strict=False):
            axes.step(at, best.T, where="post", color=colour, linewidth=0.7, alpha=0.4)
            axes.step(at, best.mean(axis=0), where="post", color=colour, linewidth=2.2, label=name)
        axes.set_ylim(means.min() - 0.1 * np.ptp(means), means.max() + 0.1 * np.ptp(means))  # a seed may begin worse
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, title="mean over seeds (thin: each seed)")
    print(f"picture: {path}")
