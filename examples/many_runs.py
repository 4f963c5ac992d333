"""200 runs in one call, and their report.

Ten test tasks of four search spaces that the library carries, from five initial designs each, are 200 runs of Bayesian
optimisation. One call makes all of them for a method by name: they are compiled and shared out over the cores, and each
is in the result file when it is finished, so an interrupted call resumes when it is made again. The report compares the
result files of several methods.

The script prints how long each call took and the methods' mean regret (0 is the best row of a task's table, 1 the
worst) with its standard error over tasks, and leaves ``many_runs/`` with the result files, the figures, of which
``regret.png`` is one, and ``report.html``, which holds all of it.

``python examples/many_runs.py [--out FOLDER] [--quick]``
"""

from __future__ import annotations

import time

from gallery import options, report, run

from dre_jax.data import bundled
from dre_jax.hpob.evaluation import run_hpob
from dre_jax.runtime.setup import prepare

METHODS = ("gcp", "gp", "random")  # a Gaussian copula of past tasks; a Gaussian process; chance


def main() -> None:
    """Runs the methods, and reports."""
    args = options(__doc__, "two methods, one search space, one design").parse_args()
    prepare()  # one device a core
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
