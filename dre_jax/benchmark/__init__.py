"""Comparing methods: HPO-B's protocol, statistics, figures, the report."""

from dre_jax.benchmark.compare import Comparison, compare, table
from dre_jax.benchmark.evaluation import Evaluation, FinishedRun, Plan
from dre_jax.benchmark.report import report
from dre_jax.benchmark.statistics import Significance, significance

__all__ = [
    "Comparison",
    "Evaluation",
    "FinishedRun",
    "Plan",
    "Significance",
    "compare",
    "report",
    "significance",
    "table",
]
