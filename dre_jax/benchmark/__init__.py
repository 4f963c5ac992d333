"""Comparing methods: HPO-B's protocol, statistics, figures, the report."""

from dre_jax.benchmark.compare import Comparison, compare, table
from dre_jax.benchmark.evaluation import Evaluation
from dre_jax.benchmark.handler import HPOBHandler
from dre_jax.benchmark.hpob import run_hpob
from dre_jax.benchmark.plan import FailedRun, FinishedRun, Plan
from dre_jax.benchmark.report import report
from dre_jax.benchmark.statistics import Significance, significance

__all__ = [
    "Comparison",
    "Evaluation",
    "FailedRun",
    "FinishedRun",
    "HPOBHandler",
    "Plan",
    "Significance",
    "compare",
    "report",
    "run_hpob",
    "significance",
    "table",
]
