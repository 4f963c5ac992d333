"""``dre-jax suggest``: prints the next configurations of a history in CSV."""

from pathlib import Path
from typing import Annotated

import typer

from dre_jax.cli import options


def suggest(
    space: options.SpaceFile,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Trials so far: one column per hyperparameter, `value`, and optionally `state` (running, failed).",
        ),
    ] = None,
    checkpoint: options.Surrogate = None,
    n: Annotated[int, typer.Option("-n", "--number", help="Number of configurations.", min=1)] = 1,
    direction: Annotated[str, typer.Option(help="minimize or maximize.")] = "minimize",
    seed: options.Seed = 0,
    features: options.Features = None,
) -> None:
    """Print the configurations to try next, one JSON object per line.

    The same history, seed and number give the same lines. Add them to the history as running before you ask again.
    """
    from dre_jax.cli.trial_progress import format_json
    from dre_jax.tuning import Optimizer, Surrogate, read_space
    from dre_jax.tuning.command.history_csv import add_history

    search_space = read_space(space)
    surrogate = None if checkpoint is None else Surrogate.load(checkpoint, space=search_space)
    task_features = options.parse_features(features)
    optimizer = Optimizer(search_space, surrogate, direction=direction, seed=seed, features=task_features)
    if history is not None:
        add_history(optimizer, history)
    for trial in optimizer.ask(n):
        print(format_json(trial.params))
