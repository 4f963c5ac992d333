"""HPO-B's protocol on any method: an evaluation into a result file, HPO-B's own handler, grids of jobs, downloads."""

from dre_jax.hpob.evaluation import Evaluation, run_hpob
from dre_jax.hpob.handler import HPOBHandler
from dre_jax.hpob.jobs import BUNDLED, Job, collect, data_folder, make_jobs, run_jobs
from dre_jax.hpob.plan import FailedRun, FinishedRun, Plan
from dre_jax.hpob.timing import Times, suggestion_times

__all__ = [
    "BUNDLED",
    "Evaluation",
    "FailedRun",
    "FinishedRun",
    "HPOBHandler",
    "Job",
    "Plan",
    "Times",
    "collect",
    "data_folder",
    "make_jobs",
    "run_hpob",
    "run_jobs",
    "suggestion_times",
]
