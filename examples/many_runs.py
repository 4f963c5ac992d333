"""200 runs in one call, and their report.

Four bundled search spaces with ten test tasks each, from five initial designs, make 200 runs of Bayesian optimisation.
One call compiles all runs of a method and distributes them over the cores. The call writes each finished run to the
result file; repeat an interrupted call to resume it. The report compares the result files of several methods.

The script prints the time of each call, and each method's mean regret (0 is the best row of a task's table, 1 the
worst) with its standard error over tasks. It writes the folder ``many_runs/`` with the result files, the figures (such
as ``regret.png``) and ``report.html``, which has all results.

``python examples/many_runs.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

import time

from gallery import options, report, run

from dre_jax.data import bundled
from dre_jax.hpob.evaluation import run_hpob
from dre_jax.runtime.setup import prepare

METHODS = ("gcp", "gp", "random")  # a Gaussian copula of past tasks; a Gaussian process; random search


def main() -> None:
    """Runs the methods, and writes the report."""
    args = options(__doc__, "two methods, one search space, one design").parse_args()
    prepare()  # one device per core
    methods, spaces, designs = (("gp", "random"), ["svm"], ["test0"]) if args.quick else (METHODS, None, None)
    trials, out = 10, args.out / "many_runs"
    files = {}
    for method in methods:
        start, files[method] = time.monotonic(), out / f"{method}.json"
        runs = run_hpob(method, bundled.path(), files[method], spaces=spaces, trials=trials, seeds=designs)
        print(f"{method}: {len(list(runs.runs()))} runs of {trials} trials in {time.monotonic() - start:.0f} s")
    report(files, out, [5, trials])


if __name__ == "__main__":
    run(main)
