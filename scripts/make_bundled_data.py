"""Make the small real meta-dataset that ships in `dre_jax/data/bundled/`.

    python scripts/make_bundled_data.py --cache SCRATCH            # all of it, about 20 minutes of one core
    python scripts/make_bundled_data.py --cache SCRATCH --quick    # tiny sizes, to SCRATCH/quick, in a minute

Needs scikit-learn and no network. Every finished task is kept in the cache, so the same command goes on after an
interruption. One process, one thread: set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bundled.checks import check
from bundled.evaluate import Result, Sizes, evaluate
from bundled.files import Results, write
from bundled.provenance import provenance
from bundled.spaces import SPACES
from bundled.tasks import Problem, problems

FULL = Sizes(shared=56, fresh=200)
QUICK = Sizes(shared=4, fresh=8)
QUICK_TASKS = 2
SHIPPED = Path(__file__).resolve().parents[1] / "dre_jax" / "data" / "bundled"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the bundled meta-dataset.")
    parser.add_argument("--cache", type=Path, required=True, help="scratch folder for finished tasks")
    parser.add_argument("--out", type=Path, help="where the files go (the package's folder; with --quick CACHE/quick)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--space", action="append", choices=sorted(SPACES), help="fill the cache for this space only")
    return parser.parse_args()


def run(chosen: list[str], tasks: dict[str, list[Problem]], sizes: Sizes, cache: Path) -> Results:
    total = len(chosen) * sum(len(members) for members in tasks.values())
    results: Results = {}
    done = 0
    for name in chosen:
        results[name] = {}
        for split, members in tasks.items():
            finished: dict[str, Result] = {}
            for problem in members:
                result, kept = evaluate(SPACES[name], problem, sizes, cache)
                finished[problem.name] = result
                done += 1
                how = "cached" if kept else f"{result.seconds:.1f} s"
                print(
                    f"{done}/{total} {name} {split} {problem.name}: {how}, best {max(result.responses):.4f}", flush=True
                )
            results[name][split] = finished
    return results


def main() -> int:
    given = arguments()
    sizes = QUICK if given.quick else FULL
    tasks = {split: members[:QUICK_TASKS] if given.quick else members for split, members in problems().items()}
    cache = given.cache / ("quick-cache" if given.quick else "cache")
    results = run(given.space or list(SPACES), tasks, sizes, cache)
    if given.space:
        print("files are written by a run over all spaces")
        return 0
    for space, splits in results.items():
        for split in splits.values():
            for name, result in split.items():
                # a dozen rows cannot keep a promise of 5 %
                check(f"{space}/{name}", result, *([1.0] if given.quick else []))
    out = given.out or (given.cache / "quick" if given.quick else SHIPPED)
    size = write(out, list(SPACES.values()), results, provenance(results, list(SPACES.values()), tasks, sizes))
    print(f"wrote {out.name}: {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
