"""The paper's motivating example: a ranking ensemble on a sinusoid, untrained, looked into, and meta-trained.

    python scripts/motivating_example.py --out DIR            # minutes on one core
    python scripts/motivating_example.py --out DIR --quick    # tiny sizes, to try the script

Writes the steps of an untrained ensemble (steps), the members' outputs in its second step (outputs), and what
meta-training on five shifted sinusoids does for a sixth (transfer) to DIR, PNG and SVG; the tables, printed, as
motivating_example.md. `scripts/papers/sinusoid.py` and `transfer.py` say what the paper fixes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jax
from one_line import errors_in_one_line
from papers.inside import walk
from papers.sinusoid import initial_rows, make_space, make_task
from papers.sinusoid_figures import draw_outputs, draw_steps, draw_transfer
from papers.sinusoid_report import output_table, step_table, transfer_table
from papers.transfer import META, Sizes, compare, train, untrained

from dre_jax import FineTuneConfig, MetaTrainConfig
from dre_jax.data.files import make_folder, write_text
from dre_jax.runtime.setup import prepare

QUICK = Sizes(
    seeds=2,
    trials=3,
    training=MetaTrainConfig(steps=20, lists_per_step=2, n_support=3, n_query=10),
    from_random=FineTuneConfig(epochs=10, learning_rate=0.02),
)
MOST_TRIALS = 13  # of the run that is drawn: as many as fit the history's first size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for tables and figures")
    parser.add_argument("--seed", type=int, default=0, help="of the run that is drawn")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    given = parser.parse_args()
    sizes = QUICK if given.quick else Sizes()
    make_folder(given.out)
    prepare()
    started = time.perf_counter()

    def report(line: str) -> None:
        print(f"{line} ({time.perf_counter() - started:.0f} s)", flush=True)

    task = make_task("beta 0", 0.0)
    key = jax.random.key(given.seed)
    trials = sizes.trials if given.quick else MOST_TRIALS
    steps = walk(untrained(sizes), None, task, initial_rows(given.seed, (0.0,)), trials, key)
    draw_steps(task, steps, given.out, "steps")
    second = steps[min(1, len(steps) - 1)]  # the step that the paper's Figure 3 shows
    draw_outputs(task, second, given.out, "outputs")
    report(f"untrained: {len(steps)} steps drawn")

    space = make_space(sizes.seeds)
    traces = compare(space, sizes, report)
    dataset, shown = next(iter(space.test.items()))
    (first,) = walk(META, train(space, sizes, 0), shown, space.designs[dataset]["0"], 1, key)
    draw_transfer(shown, first, traces, given.out, "transfer")

    text = "\n\n".join(
        [
            f"Untrained on beta 0, seed {given.seed}, {len(steps)} steps:",
            step_table(task, steps),
            "Members' outputs in its second step:",
            output_table(second),
            f"Trials to within 1 % of the optimum, {sizes.seeds} seeds, {sizes.trials} trials at most:",
            transfer_table(traces, space.test),
        ]
    )
    print(text)
    write_text(given.out / "motivating_example.md", text + "\n")


if __name__ == "__main__":
    with errors_in_one_line():
        main()
