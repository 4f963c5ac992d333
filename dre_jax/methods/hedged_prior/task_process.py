"""Names that moved to `dre_jax.gp.task_process`, for `dre_jax.tuning.past.studies` alone."""

from jax import Array

from dre_jax.gp.task_process import TaskHyperpriors as TaskHyperpriors
from dre_jax.gp.task_process import TaskProcess as TaskProcess
from dre_jax.gp.task_process import Trials


def task_covariance_and_residuals(process: TaskProcess, trials: Trials) -> tuple[Array, Array]:
    """Returns `TaskProcess.observe`."""
    return process.observe(trials)
