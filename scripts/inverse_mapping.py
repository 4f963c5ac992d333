"""The thesis' case study of inverse mapping: do ranking losses learn to sort numbers?

    python scripts/inverse_mapping.py --out DIR            # minutes on one core
    python scripts/inverse_mapping.py --out DIR --quick    # tiny sizes, to try the script

Prints the table, and writes it to DIR/inverse_mapping.md. `scripts/papers/sorting.py` says what the thesis fixes and
what is our choice.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from one_line import errors_in_one_line
from papers.sorting import TRAINED_ON, Measured, Sizes, run
from papers.sorting_report import CASE_STUDY, table

from dre_jax.data.files import make_folder, write_text
from dre_jax.runtime import devices
from dre_jax.runtime.setup import prepare

QUICK = Sizes(arms=(*CASE_STUDY, "RankNet"), list_sizes=(3,), epochs=(10,), seeds=2, test_lists=50, hidden=(8,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the table")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    given = parser.parse_args()
    sizes = QUICK if given.quick else Sizes()
    make_folder(given.out)
    prepare()
    devices.use(1)  # five members are not shared out evenly
    measured: list[Measured] = []
    started = time.perf_counter()
    for name in sizes.arms:
        for n in sizes.list_sizes:
            measured += run(name, n, sizes)
            print(f"{name}, list size {n}: done after {time.perf_counter() - started:.0f} s", flush=True)
    low, high = TRAINED_ON
    head = (
        f"Share of {sizes.test_lists} lists sorted without a mistake, mean ± standard deviation over {sizes.seeds} "
        f"seeds; trained on numbers in [{low:g}, {high:g}], {sizes.batch} lists an epoch. "
        "Pairs: share of pairs in order. Thesis: its accuracies in the same order."
    )
    text = f"{head}\n\n{table(measured)}"
    print(text)
    write_text(given.out / "inverse_mapping.md", text + "\n")


if __name__ == "__main__":
    with errors_in_one_line():
        main()
