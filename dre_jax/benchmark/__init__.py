"""HPO-B's protocol on any method: one evaluation into a result file, and HPO-B's own handler."""

from dre_jax.benchmark.evaluation import Evaluation
from dre_jax.benchmark.handler import HPOBHandler
from dre_jax.benchmark.hpob import run_hpob
from dre_jax.benchmark.plan import FailedRun, FinishedRun, Plan

__all__ = ["Evaluation", "FailedRun", "FinishedRun", "HPOBHandler", "Plan", "run_hpob"]
