"""Speed beside PyTorch: ``python -m benchmarks [--quick] [--out FILE.json] [--only NAME ...]``.

Prints a table and, if asked, writes it as JSON. Times are seconds of a unit of work, medians over repeats, compile time
apart. Beside ours stand two peers that do the same work: `eager` (benchmarks/torch_reference.py, members in a loop) and
`best` (benchmarks/torch_best.py, the fastest PyTorch we can write), and the floor: the operations and bytes that
cannot be done without, at the rates of a large matrix product and a large copy on the same cores.

``--quick`` is for a look: fewer rows, under ten minutes on two idle cores. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few rows, fewer repeats")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these rows, see --list")
    parser.add_argument("--list", action="store_true", help="print the names of all rows")
    parser.add_argument("--repeats", type=int, help="repeats of a time; 5, and 3 with --quick")
    parser.add_argument("--epochs", type=int, default=1000, help="fine-tuning epochs of a trial")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    given = parse(arguments)
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compile time is measured
    from dre_jax.runtime.setup import prepare

    prepare()
    from benchmarks.suite import plan

    if given.list:
        print("\n".join(plan.catalogue()))
        return 0
    try:
        rows = plan.select_rows(given.quick, given.only)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    repeats = given.repeats or (3 if given.quick else 5)
    return plan.run("benchmarks", arguments, rows, given.out, quick=given.quick, epochs=given.epochs, repeats=repeats)


if __name__ == "__main__":
    sys.exit(main())
