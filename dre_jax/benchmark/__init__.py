"""Comparing methods: HPO-B's protocol, tables, figures."""

from dre_jax.benchmark.compare import Comparison, compare, table
from dre_jax.benchmark.evaluation import Evaluation, FinishedRun, Plan

__all__ = ["Comparison", "Evaluation", "FinishedRun", "Plan", "compare", "table"]
