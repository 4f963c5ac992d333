"""Fine-tuning's epochs and learning rate, compared on validation tasks: the table that the defaults were chosen from.

    python scripts/choose_fine_tuning.py --out DIR --data FOLDER CHECKPOINTS [--data FOLDER CHECKPOINTS ...]

Every pair is a folder in HPO-B's layout and the root of its checkpoints (`dre-jax meta-train`). ``bundled`` stands for
the bundled data. Regret and rank are means over search spaces, so that none counts for more than another. What is
finished is kept in DIR: the same command goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dre_jax.benchmark import Comparison, Plan, compare
from dre_jax.cli.evaluate import run_plan
from dre_jax.cli.runtime import prepare
from dre_jax.data import bundled, list_spaces, read_results

VARIANTS: dict[str, tuple[int, float | None]] = {
    "none": (0, None),
    "30 x 1e-4": (30, 1e-4),
    "100 x 1e-4": (100, 1e-4),
    "300 x 1e-4": (300, 1e-4),
    "30 x 1e-3": (30, 1e-3),
    "100 x 1e-3": (100, 1e-3),
    "1000 x 1e-3": (1000, 1e-3),
}
AT = (1, 5, 10, 25)


def evaluate(name: str, data: str, checkpoints: Path, out: Path, seeds: tuple[str, ...]) -> dict[str, Comparison]:
    """Runs all variants on a folder; a comparison for each search space."""
    folder = bundled.path() if data == "bundled" else Path(data)
    comparisons = {}
    for space in list_spaces(folder):
        results = {}
        for variant, (epochs, learning_rate) in VARIANTS.items():
            path = out / f"{name}-{space}-{variant.replace(' ', '')}.json"
            plan = Plan(
                data=folder,
                spaces=(space,),
                method="dre",
                checkpoints=checkpoints,
                split="validation",
                trials=max(AT),
                seeds=seeds,
                epochs=epochs,
                learning_rate=learning_rate,
            )
            run_plan(plan, path, quiet=False)
            results[variant] = read_results(path)
        comparisons[f"{name} {space}"] = compare(results)
    return comparisons


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", nargs=2, action="append", required=True, metavar=("FOLDER", "CHECKPOINTS"))
    parser.add_argument("--seeds", default="test0,test1,test2")
    given = parser.parse_args()
    prepare()
    comparisons: dict[str, Comparison] = {}
    for i, (data, checkpoints) in enumerate(given.data):
        comparisons |= evaluate(f"data{i}", data, Path(checkpoints), given.out, tuple(given.seeds.split(",")))
    runs = sum(c.regret.shape[1] for c in comparisons.values())
    print(f"{runs} validation runs in {len(comparisons)} search spaces; mean over spaces after {AT} trials")
    regret = np.mean([c.average_regret()[:, AT] for c in comparisons.values()], axis=0)
    rank = np.mean([c.average_rank()[:, AT] for c in comparisons.values()], axis=0)
    print(f"{'epochs x rate':<14}{'regret':<40}rank")
    for i, variant in enumerate(VARIANTS):
        print(f"{variant:<14}{'  '.join(f'{v:.4f}' for v in regret[i]):<40}{'  '.join(f'{v:.2f}' for v in rank[i])}")


if __name__ == "__main__":
    main()
