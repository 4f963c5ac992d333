"""Speed beside PyTorch: ``python -m benchmarks [--quick] [--out FILE.json] [--only NAME ...]``.

Prints a table, and writes it as JSON with ``--out``. Times are seconds of a unit of work, medians over repeats, compile
time apart. Two peers do the same work: `eager` (benchmarks/torch_reference.py, members in a loop) and `best`
(benchmarks/torch_best.py, the fastest PyTorch we can write). The floor is the time of the operations and bytes that
cannot be avoided, at the rates of a large matrix product and a large copy on the same cores.

``--quick`` is for a look: fewer rows, under ten minutes on two idle cores. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compile time is measured
    from dre_jax.runtime.setup import prepare

    prepare()
    from benchmarks.suite import plan

    catalogue = plan.catalogue()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a few rows, fewer repeats")
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=catalogue, help=f"of {', '.join(catalogue)}")
    parser.add_argument("--repeats", type=int, help="repeats of a time; 5, and 3 with --quick")
    options = parser.parse_args(arguments)
    names = options.only or (plan.QUICK if options.quick else catalogue)
    rows = {name: catalogue[name] for name in names}
    repeats = options.repeats or (3 if options.quick else 5)
    return plan.run("benchmarks", arguments, rows, options.out, quick=options.quick, repeats=repeats)


if __name__ == "__main__":
    sys.exit(main())
