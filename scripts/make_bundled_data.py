"""Make the small real meta-dataset that ships in `dre_jax/data/bundled/`.

    python scripts/make_bundled_data.py --out DIR            # all of it, about 20 minutes of one core
    python scripts/make_bundled_data.py --out DIR --quick    # tiny sizes, in a minute

Needs scikit-learn and no network. One process, one thread: set OMP_NUM_THREADS=1. The package's descriptors are read,
and PROVENANCE.md is written by hand.
"""

import argparse
from pathlib import Path
from typing import Any

from bundled.scoring import response
from bundled.spaces import DESCRIPTORS, FRESH, SHARED, SPACES, decode, designs, task_rows
from bundled.tasks import problems
from command_line import errors_in_one_line

from dre_jax.data.files import make_folder, write_json

RESPONSE_DECIMALS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the files")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    args = parser.parse_args()
    shared, fresh, most = (4, 8, 2) if args.quick else (SHARED, FRESH, None)
    make_folder(args.out)
    designs_by_space: dict[str, dict[str, dict[str, list[int]]]] = {name: {} for name in SPACES}
    for split, members in problems().items():
        tables: dict[str, dict[str, Any]] = {name: {} for name in SPACES}
        for name in SPACES:
            for problem in members[:most]:
                rows = task_rows(name, problem.name, shared, fresh)
                y = [round(response(name, decode(name, row), problem), RESPONSE_DECIMALS) for row in rows]
                tables[name][problem.name] = {"X": rows, "y": [[value] for value in y]}
                if split != "train":
                    designs_by_space[name][problem.name] = designs(name, problem.name, len(rows))
                print(f"{name} {split} {problem.name}: best {max(y):.4f}, {y.count(max(y))} times", flush=True)
        write_json(args.out / f"meta-{split}-dataset.json.gz", tables)
    write_json(args.out / "bo-initializations.json.gz", designs_by_space)
    write_json(args.out / "meta-dataset-descriptors.json", DESCRIPTORS, indent=1)


if __name__ == "__main__":
    with errors_in_one_line():
        main()
