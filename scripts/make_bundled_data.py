"""Make the small real meta-dataset that ships in `dre_jax/data/bundled/`.

    python scripts/make_bundled_data.py --cache SCRATCH            # all of it, about 20 minutes of one core
    python scripts/make_bundled_data.py --cache SCRATCH --quick    # tiny sizes, to SCRATCH/quick, in a minute

Needs scikit-learn and no network. Every finished task is kept in the cache, so rerunning the command resumes after an
interruption. One process, one thread: set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bundled.results import BEST_SHARE, Results, Sizes, check, evaluate, write
from bundled.spaces import SPACES
from bundled.tasks import problems

from dre_jax.data import bundled

QUICK_TASKS = 2


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the bundled meta-dataset.")
    parser.add_argument("--cache", type=Path, required=True, help="scratch folder for finished tasks")
    parser.add_argument("--out", type=Path, help="where the files go (the package's folder; with --quick CACHE/quick)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--space", action="append", choices=sorted(SPACES), help="fill the cache for this space only")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    sizes = Sizes(shared=4, fresh=8) if given.quick else Sizes(shared=56, fresh=200)
    tasks = {split: members[:QUICK_TASKS] if given.quick else members for split, members in problems().items()}
    # a dozen rows cannot keep a promise of 5 %
    limit = 1.0 if given.quick else BEST_SHARE
    results: Results = {}
    for name in given.space or SPACES:
        for split, members in tasks.items():
            found = results.setdefault(name, {}).setdefault(split, {})
            for problem in members:
                result = evaluate(name, problem, sizes, given.cache)
                check(f"{name}/{problem.name}", result, limit)
                found[problem.name] = result
                best = max(result.responses)
                print(f"{name} {split} {problem.name}: {result.seconds:.1f} s, best {best:.4f}", flush=True)
    if given.space:
        print("files are written by a run over all spaces")
        return
    out = given.out or (given.cache / "quick" if given.quick else bundled.path())
    write(out, results)
    print(f"wrote {out.name}; PROVENANCE.md there is written by hand")


if __name__ == "__main__":
    main()
