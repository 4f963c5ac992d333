"""Optimisation: histories, acquisition functions, the loop over trials, and batches of runs."""

from dre_jax.search.acquisition import (
    Acquisition,
    AcquisitionConfig,
    acquire_by_rank,
    log_expected_improvement,
    pick,
    register_acquisition,
)
from dre_jax.search.batch import SpaceRuns, run_spaces, run_tasks
from dre_jax.search.execution import ExecutionConfig
from dre_jax.search.history import Candidates, History, make_history, sort_history
from dre_jax.search.loop import SearchTask, run, run_in_python
from dre_jax.search.method import Capabilities, HistoryMethod, Method, PosteriorMethod
from dre_jax.search.ranks import mean_and_deviation, mean_tie_ranks

__all__ = [
    "Acquisition",
    "AcquisitionConfig",
    "Candidates",
    "Capabilities",
    "ExecutionConfig",
    "History",
    "HistoryMethod",
    "Method",
    "PosteriorMethod",
    "SearchTask",
    "SpaceRuns",
    "acquire_by_rank",
    "log_expected_improvement",
    "make_history",
    "mean_and_deviation",
    "mean_tie_ranks",
    "pick",
    "register_acquisition",
    "run",
    "run_in_python",
    "run_spaces",
    "run_tasks",
    "sort_history",
]
