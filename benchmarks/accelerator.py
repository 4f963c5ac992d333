"""Speed on an accelerator in four minutes: ``python -m benchmarks.accelerator [--out FILE.json] [--full] [--small]``.

Every row has a limit of time, and so have all of them together; the most important ones come first, and the file is
written after each. `docs/results/speed.md` explains the rows. ``--full`` also measures HPO-B's whole protocol,
without the limit for all. ``--small`` does everything in miniature, also on a CPU. PyTorch peers run only where
PyTorch sees the GPU.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.suite import accelerator_rows, plan
from benchmarks.suite.accelerator_rows import LARGE, SMALL, LimitedRow, catalogue
from benchmarks.suite.floors import Rates
from benchmarks.suite.rows import Row
from benchmarks.suite.worker import LimitedWorker

SECONDS = 225
"""For all rows: with the start and the end, four minutes."""
VARIABLES = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "DRE_JAX_NATIVE": "0"}
"""Of processes that measure: peers need memory too; in miniature, on a CPU, the loops are an accelerator's too."""
LEAST = 5
"""Seconds without which no row is begun."""


def main(arguments: list[str] | None = None) -> int:
    """Measures, writes and prints; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="measure these rows only")
    parser.add_argument("--full", action="store_true", help="also HPO-B's whole protocol, for as long as it takes")
    parser.add_argument("--small", action="store_true", help="in miniature, to see that it works")
    options = parser.parse_args(arguments)
    end = time.monotonic() + (float("inf") if options.full else SECONDS)
    sizes = SMALL if options.small else LARGE
    which = {"full": options.full, "peers": not options.small and torch_sees_gpu()}
    rows = catalogue(sizes, **which)
    if unknown := set(options.only or ()) - set(rows):
        parser.error(f"--only must name rows of {', '.join(rows)}, but got {', '.join(sorted(unknown))}")
    rates = list[Rates]()  # none if they could not be measured
    with LimitedWorker(accelerator_rows.call) as worker:

        def environment() -> dict[str, Any]:
            seconds = min(60, end - time.monotonic())
            about: dict[str, Any] = worker.call("environment", seconds=seconds, variables=VARIABLES)
            rates.append(Rates(*(about[rate] for rate in plan.RATES)))
            return about

        def measure(name: str, row: LimitedRow) -> Row:
            seconds = min(row.seconds, end - time.monotonic())
            if seconds < LEAST:
                raise RuntimeError("no time was left for it")
            variables = {**VARIABLES, **row.variables}
            known = rates[0] if rates else None
            result: Row = worker.call("measure", name, sizes, which, known, seconds=seconds, variables=variables)
            return result

        chosen: dict[str, Callable[[], Row]] = {
            name: partial(measure, name, row) for name, row in rows.items() if name in (options.only or rows)
        }
        return plan.report("benchmarks.accelerator", arguments, environment, chosen, options.out)


def torch_sees_gpu() -> bool:
    """Returns whether PyTorch is installed and sees a GPU; another process asks, as asking takes memory of the GPU."""
    question = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", question], capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
