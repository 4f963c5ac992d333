"""Shared parts of the examples: options, reports, and errors in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dre_jax.data.files import make_folder
from dre_jax.errors import DreError
from dre_jax.report import write_report


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


def report(files: Mapping[str, Path], out: Path, at: Sequence[int]) -> None:
    """Writes the report of result files, and prints each method's mean regret with its standard error over tasks."""
    summary = write_report(files, out, at=at)
    errors = summary["standard_error"]["average_regret"]
    for method, regrets in summary["average_regret"].items():
        text = ", ".join(f"{regrets[n]:.3f} ± {errors[method][n]:.3f} after {n}" for n in summary["at"])
        print(f"{method}: mean regret {text} trials")
    print(f"picture: {out / 'regret.png'}")
