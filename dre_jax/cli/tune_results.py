"""The last lines of ``dre-jax tune``: the best trials, and how past studies agree with the trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dre_jax.cli.trial_progress import format_json, format_so_far, format_spent, format_value
from dre_jax.tuning.fidelity.fidelity import budget_text
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.runner import FileOptimizer
    from dre_jax.tuning.command.shared_study import SharedStudy

_MAX_STUDIES = 5
"""Maximum number of past studies."""


def print_best(best: Sequence[Trial], optimizer: FileOptimizer | SharedStudy) -> None:
    """Prints the best trial, or the front; in a study with a fidelity, also how far each has trained."""
    so_far, trials = format_so_far(best), f"{len(optimizer.trials)} trials{format_spent(optimizer)}"

    def subject(trial: Trial) -> str:
        fidelity = optimizer.fidelity
        if fidelity is None:
            return f"trial {trial.number}"
        of = f" of {budget_text(fidelity.highest)}" if so_far else ""
        return f"trial {trial.number}, {fidelity.name} {budget_text(trial.budget or 0)}{of}"

    if len(optimizer.objectives) > 1:
        print(f"front{so_far} of {trials}: {len(best)}")
        for trial in best:
            print(f"{format_value(trial)} ({subject(trial)}): {format_json(trial.params)}")
    else:
        print(f"best{so_far} of {trials}: {best[0].value} ({subject(best[0])})")
        print(format_json(best[0].params))


def print_sources(optimizer: FileOptimizer | SharedStudy) -> None:
    """Prints how far the past studies of each surrogate agree with the trials."""
    for name, direction in optimizer.objectives:
        surrogate = optimizer.named_surrogates[name]
        if surrogate is not None and surrogate.studies is not None:
            trials = [trial.with_objective(name) for trial in optimizer.trials]
            lines = surrogate.sources(trials, direction=direction).lines(_MAX_STUDIES)
            print("\n".join([f"past of {name}:", *lines] if len(optimizer.objectives) > 1 else lines))
