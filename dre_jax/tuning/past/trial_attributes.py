"""User attributes of Optuna's trials: the cost of a trial, and the standard error of its value."""

from typing import Any

from dre_jax.tuning.trials.trial import checked_cost, checked_stderr

COST, STDERR = "dre_jax:cost", "dre_jax:stderr"


def cost_of(trial: Any) -> float | None:
    """Returns the cost that was reported of a trial of Optuna, None without any; see `checked_cost`."""
    cost = trial.user_attrs.get(COST)
    return None if cost is None else checked_cost(cost, f"the cost of trial {trial.number}")


def stderr_of(trial: Any) -> float | None:
    """Returns the standard error that was reported of a trial's value, None without any; see `checked_stderr`."""
    stderr = trial.user_attrs.get(STDERR)
    return None if stderr is None else checked_stderr(stderr, f"the standard error of trial {trial.number}")
