"""User attributes of Optuna's trials: costs, standard errors of values, and budgets."""

from typing import Any

from dre_jax.tuning.trials.trial import checked_cost, checked_stderr

COST, STDERR = "dre_jax:cost", "dre_jax:stderr"
BUDGET, RESUMES, RESTARTS = "dre_jax:budget", "dre_jax:resumes", "dre_jax:restarts"
"""As `Trial.budget`, `Trial.resumes` and `Trial.restarts`."""
FIDELITY = "dre_jax:fidelity"
"""User attribute of a study: its fidelity, as in a study file."""


def cost_of(trial: Any) -> float | None:
    """Returns the cost that was reported of a trial of Optuna, None without any; see `checked_cost`."""
    cost = trial.user_attrs.get(COST)
    return None if cost is None else checked_cost(cost, f"the cost of trial {trial.number}")


def stderr_of(trial: Any) -> float | None:
    """Returns the standard error that was reported of a trial's value, None without any; see `checked_stderr`."""
    stderr = trial.user_attrs.get(STDERR)
    return None if stderr is None else checked_stderr(stderr, f"the standard error of trial {trial.number}")


def is_paused_trial(trial: Any) -> bool:
    """Returns whether a trial of Optuna is paused below the highest budget of its study: pruned, with a value."""
    return trial.state.name == "PRUNED" and BUDGET in trial.user_attrs and trial.values is not None
