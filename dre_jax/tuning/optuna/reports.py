"""What an objective of Optuna reports of a trial beside its value: the cost, and the standard error of the value."""

from optuna.trial import Trial

from dre_jax.tuning.past.trial_attributes import COST, STDERR
from dre_jax.tuning.trials.trial import checked_cost, checked_stderr


def report_cost(trial: Trial, cost: float) -> None:
    """Reports the cost of a running trial: `DRESampler` then prefers trials that gain more per unit of cost.

    The trial keeps it as the user attribute `dre_jax:cost`. Costs of trials that fail count as spent.

    Args:
      trial: that the objective got, or `study.ask`.
      cost: above 0, in any unit, the same for all trials of a study.

    Raises:
      DataError: unless the cost is finite and positive.

    Example:
      >>> import optuna
      >>> from dre_jax.tuning.optuna import DRESampler
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> def objective(trial):
      ...     layers = trial.suggest_int("layers", 1, 8)
      ...     report_cost(trial, 3.0 * layers)
      ...     return 1.0 / layers
      >>> study = optuna.create_study(sampler=DRESampler(seed=0))
      >>> study.optimize(objective, n_trials=3)
      >>> study.trials[0].user_attrs == {"dre_jax:cost": 3.0 * study.trials[0].params["layers"]}
      True
    """
    trial.set_user_attr(COST, checked_cost(cost))


def report_stderr(trial: Trial, stderr: float) -> None:
    """Reports the standard error of the value of a running trial, for example over folds: a large one counts less.

    The trial keeps it as the user attribute `dre_jax:stderr`. `DRESampler` estimates the errors of other values. It
    raises a `ConfigError` in a study of several objectives, and with a surrogate of a method that uses no standard
    errors.

    Args:
      trial: that the objective got, or `study.ask`.
      stderr: in units of the value.

    Raises:
      DataError: unless the standard error is finite and at least 0.
    """
    trial.set_user_attr(STDERR, checked_stderr(stderr))
