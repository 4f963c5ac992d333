"""Speed beside PyTorch: ``python -m benchmarks [--out FILE.json] [--only NAME ...]``.

Prints a table, and writes it as JSON with ``--out``. Times are seconds of a unit of work, medians over repeats, compile
time apart. Two peers in benchmarks/peers/ do the same work: `eager` (torch_reference.py, members in a loop) and `best`
(torch_best.py, the fastest PyTorch we can write). The floor is the time of the operations and bytes that cannot be
avoided, at the rates of a large matrix product and a large copy on the same cores. Nothing else should run meanwhile.
"""

import argparse
import sys
from pathlib import Path

import jax

from benchmarks.suite import plan
from dre_jax.runtime.setup import prepare


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    jax.config.update("jax_enable_compilation_cache", False)  # compile time is measured
    prepare()
    catalogue = plan.catalogue()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=catalogue, help=f"of {', '.join(catalogue)}")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of a time")
    options = parser.parse_args(arguments)
    rows = {name: catalogue[name] for name in options.only or catalogue}
    return plan.run("benchmarks", arguments, rows, options.out, repeats=options.repeats)


if __name__ == "__main__":
    sys.exit(main())
