"""Names that moved to `dre_jax.gp.task_processes`, for `dre_jax.tuning.past.studies` alone."""

from dre_jax.gp.task_processes import TaskProcessConfig as TaskProcessConfig
from dre_jax.gp.task_processes import fixed_processes as fixed_processes
