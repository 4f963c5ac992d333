"""Results compared: ranks, statistics, figures, the page."""

from dre_jax.report.comparison import Comparison, compare
from dre_jax.report.statistics import Significance, significance
from dre_jax.report.write import write_report, write_results_and_report

__all__ = ["Comparison", "Significance", "compare", "significance", "write_report", "write_results_and_report"]
