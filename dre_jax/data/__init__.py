"""Past tasks: HPO-B's files, task tables for the device, and result files."""

from dre_jax.data.hpob import MODES, list_spaces, load_space, write_dataset
from dre_jax.data.results import Results, add_trace, lengths, read_results, write_results
from dre_jax.data.spaces import SPLITS, SearchSpace, Task, fingerprint
from dre_jax.data.tasks import TaskTable, build_table

__all__ = [
    "MODES",
    "SPLITS",
    "Results",
    "SearchSpace",
    "Task",
    "TaskTable",
    "add_trace",
    "build_table",
    "fingerprint",
    "lengths",
    "list_spaces",
    "load_space",
    "read_results",
    "write_dataset",
    "write_results",
]
