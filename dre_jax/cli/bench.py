"""``dre-jax bench``: methods on families of test functions, hundreds of searches at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dre_jax.checks import parse_names
from dre_jax.cli import options
from dre_jax.functions.bench import BenchConfig, find_family, run_bench
from dre_jax.runtime.setup import prepare


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Run methods on test functions whose optimum is known; rerun an interrupted command to resume it.

    `dre-jax report OUT/*.json` compares the result files.
    """

    families: Annotated[str, typer.Option(help="Families of functions, such as branin,hartmann6.")]
    methods: Annotated[str, typer.Option(help="Methods, such as gp,hedged-prior,random.")]
    out: Annotated[Path, typer.Option(help="Folder for a result file of each method.")]
    tasks: Annotated[int, typer.Option(help="Tasks of each family.", min=1)] = 5
    seeds: Annotated[int, typer.Option(help="Searches of each task.", min=1)] = 5
    trials: Annotated[int, typer.Option(help="Trials of a search.", min=1, max=192)] = 50
    past_studies: Annotated[int, typer.Option(help="Random studies that methods with transfer learn from.", min=1)] = 3
    past_trials: Annotated[int, typer.Option(help="Trials of each random study.", min=3)] = 20
    quiet: options.Quiet = False

    def run(self) -> None:
        """Runs the searches, and prints mean regrets."""
        families = [find_family(name) for name in parse_names(self.families, "--families")]
        names = parse_names(self.methods, "--methods")
        prepare()
        config = BenchConfig(
            n_tasks=self.tasks,
            n_seeds=self.seeds,
            n_trials=self.trials,
            n_past_studies=self.past_studies,
            n_past_trials=self.past_trials,
        )
        for name in names:
            results = run_bench(name, families, self.out, config, quiet=self.quiet)
            regrets = [1.0 - trace[-1] for *_, trace in results.runs()]
            print(f"{name}: mean regret {np.mean(regrets):.4f} of {len(regrets)} searches of {self.trials} trials")
