"""Grids of jobs: every method on the same tasks and initial designs, done by processes that have a core each."""

from dre_jax.experiment.grid import Failure, run_jobs
from dre_jax.experiment.jobs import BUNDLED, Job, collect, cost_of, data_folder, finished_methods, make_jobs
from dre_jax.experiment.timing import Times, times_of
from dre_jax.experiment.variants import MISLEADING, fold, mislead, unfold, write_folds, write_misleading

__all__ = [
    "BUNDLED",
    "MISLEADING",
    "Failure",
    "Job",
    "Times",
    "collect",
    "cost_of",
    "data_folder",
    "finished_methods",
    "fold",
    "make_jobs",
    "mislead",
    "run_jobs",
    "times_of",
    "unfold",
    "write_folds",
    "write_misleading",
]
