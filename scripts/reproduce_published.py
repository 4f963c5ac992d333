"""Draw the paper's Figures 5 and 6, and the critical-difference diagrams 9 to 11, from the published traces.

    python scripts/reproduce_published.py [--traces DIR] [--out DIR]

Writes the report of each experiment of `published.toml` into a folder of its own, and prints what the traces lack. Exit
status 1 if a reference number is not met.
"""

import argparse
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from command_line import errors_in_one_line

from dre_jax.errors import DataWarning, DreError
from dre_jax.report import write_report

REPOSITORY = Path(__file__).resolve().parents[1]
DECLARATION = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
EXPERIMENTS: Sequence[Mapping[str, Any]] = DECLARATION["experiments"]
TOLERANCE = 1e-4


def reference_numbers(experiment: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields averages over all runs that the traces must give to four decimals, and "yes", "no" or "cannot be told"."""
    complete = set(experiment["files"]) <= set(summary["methods"])
    for quantity in ("rank", "regret"):
        for method, by_trial in experiment.get(f"{quantity}s", {}).items():
            for trial, value in by_trial.items():
                text = f"Average {quantity} of {method} after {trial} trials: {value:.4f}"
                if not complete or int(trial) > summary["trials"]:
                    yield f"{text} (traces missing or too short)", "cannot be told"
                else:
                    average = summary[f"average_{quantity}"][method][int(trial)]
                    yield f"{text} (traces: {average:.4f})", "yes" if abs(average - value) <= TOLERANCE else "no"


def run(traces: Path, out: Path) -> int:
    """Writes a report of each experiment with two traces at least; returns how many reference numbers are not met."""
    if not traces.is_dir():
        raise DreError(f"the traces must be a folder, but {traces} is none")
    print(*DECLARATION["introduction"], sep="\n")
    wrong, reports = 0, []
    for experiment in EXPERIMENTS:
        print(f"== {experiment['title']}", *experiment["notes"], sep="\n   ", flush=True)
        paths = {name: traces / f"{file}.json" for name, file in experiment["files"].items()}
        files = {name: path for name, path in paths.items() if path.is_file()}
        if missing := [path.name for name, path in paths.items() if name not in files]:
            print(f"   not in {traces}: {', '.join(missing)}")
        if len(files) < 2:
            print("   left out: it takes two traces at least")
            continue
        reports.append(out / experiment["name"] / "report.html")
        summary = write_report(files, reports[-1].parent, title=experiment["title"])
        for text, agrees in reference_numbers(experiment, summary):
            print(f"   [{agrees}] {text}")
            wrong += agrees == "no"
    if not reports:
        raise DreError(f"{traces} holds the traces of no experiment")
    print(*reports, f"{len(reports)} experiments; reference numbers not met: {wrong}", sep="\n")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the paper's figures on HPO-B from the published traces.")
    default = REPOSITORY.parent / "shared" / "data" / "hpob-traces"
    parser.add_argument("--traces", type=Path, default=default, help="folder of the published result files")
    parser.add_argument("--out", type=Path, default=Path("out/published"), help="folder for the reports")
    options = parser.parse_args(arguments)
    # The published files have defects that are known and stated in the notes.
    warnings.simplefilter("ignore", DataWarning)
    with errors_in_one_line():
        return 1 if run(options.traces, options.out) else 0


if __name__ == "__main__":
    sys.exit(main())
