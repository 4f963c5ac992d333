"""Grids of jobs: every method on the same tasks and initial designs, worked off by processes that have a core each."""

from dre_jax.experiment.grid import Failure, run_jobs
from dre_jax.experiment.jobs import BUNDLED, Job, collect, cost_of, data_folder, finished_methods, make_jobs
from dre_jax.experiment.timing import Times, times_of

__all__ = [
    "BUNDLED",
    "Failure",
    "Job",
    "Times",
    "collect",
    "cost_of",
    "data_folder",
    "finished_methods",
    "make_jobs",
    "run_jobs",
    "times_of",
]
