"""Draw the paper's Figures 5 and 6, and the critical-difference diagrams 9 to 11, from the published traces.

    python scripts/reproduce_published.py [--traces DIR] [--out DIR]

Writes `report.html`, one section an experiment, and each experiment's figures in a folder of its own. Says what the
paper states of each figure and whether the traces bear it out. Exit status 1 if a reference number is not met.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from one_line import errors_in_one_line
from published.experiments import EXPERIMENTS, INTRODUCTION
from published.sections import reproduce

from dre_jax.data.files import make_folder
from dre_jax.errors import DataWarning, DreError
from dre_jax.report.page import write_page

REPOSITORY = Path(__file__).resolve().parents[1]
TITLE = "Deep Ranking Ensembles on HPO-B: the published traces"


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Draw the paper's figures on HPO-B from the published traces.")
    default = REPOSITORY.parent / "shared" / "data" / "hpob-traces"
    parser.add_argument("--traces", type=Path, default=default, help="folder of the published result files")
    parser.add_argument("--out", type=Path, default=Path("out/published"), help="folder for the page and the figures")
    return parser.parse_args(given)


def run(traces: Path, out: Path) -> int:
    if not traces.is_dir():
        raise DreError(f"the traces must be a folder, but {traces} is none")
    make_folder(out)
    sections, wrong = [], 0
    for experiment in EXPERIMENTS:
        print(f"== {experiment.title}", flush=True)
        outcome = reproduce(experiment, traces, out)
        if outcome.missing:
            print(f"   not in {traces}: {', '.join(outcome.missing)}")
        if outcome.section is None:
            print("   left out: it takes two traces at least")
            continue
        sections.append(outcome.section)
        wrong += outcome.wrong
        for what, found, agrees in outcome.said:
            print(f"   [{agrees}] {what} (traces: {found})")
    if not sections:
        raise DreError(f"{traces} holds the traces of no experiment")
    write_page(out / "report.html", TITLE, sections, INTRODUCTION)
    print(f"{len(sections)} experiments in {out / 'report.html'}; reference numbers not met: {wrong}")
    return wrong


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    # The published files have defects that are known and stated on the page.
    warnings.simplefilter("ignore", DataWarning)
    with errors_in_one_line():
        return 1 if run(options.traces, options.out) else 0


if __name__ == "__main__":
    sys.exit(main())
