"""HPO-B in one call: all its search spaces, tasks and initial designs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.data import Results, read_results
from dre_jax.errors import MethodError
from dre_jax.hpob.evaluation import Evaluation
from dre_jax.hpob.plan import FinishedRun, Plan
from dre_jax.search.method import Method

if TYPE_CHECKING:
    from dre_jax.search.host import HostMethod


def run_hpob(
    method: str | Method | type[HostMethod],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    checkpoints: str | os.PathLike[str] | None = None,
    spaces: Sequence[str] | None = None,
    trials: int = 100,
    seeds: Sequence[str] | None = None,
    report: Callable[[FinishedRun], None] | None = None,
    **options: Any,
) -> Results:
    """Evaluates a method on HPO-B: 16 search spaces, 86 tasks from 5 designs each, 430 runs of 100 trials.

    Each run is in the file when it is finished, so calling it again resumes an interrupted one. One search
    space is in memory at a time.

    Args:
      method: a name, "module:Class" or "file.py:Class"; or a method, or the class of a host method.
      data: HPO-B's folder.
      out: the result file, HPO-B's format.
      checkpoints: their root, for methods that read them.
      spaces: search spaces; all by default.
      trials: T, after the initial design.
      seeds: initial designs by name; all by default.
      report: called with every run.
      options: other fields of `Plan`, such as `settings={"epochs": 10}`.

    Raises:
      DataError, ConfigError, CheckpointError: as `Evaluation`.
      MethodError: at the end, for runs that a host method's fault ended; the others are in the file.

    Example:
      >>> import tempfile
      >>> from dre_jax.data import bundled
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     results = run_hpob("random", bundled.path(), f"{folder}/random.json", trials=1, seeds=["test0"])
      >>> len(list(results.runs()))
      40
    """
    plan = Plan(
        data=Path(data),
        method=method,
        spaces=None if spaces is None else tuple(spaces),
        checkpoints=None if checkpoints is None else Path(checkpoints),
        trials=trials,
        seeds=None if seeds is None else tuple(seeds),
        **options,
    )
    evaluation = Evaluation(plan, Path(out))
    for run in evaluation:
        if report is not None:
            report(run)
    if evaluation.failed:
        raise MethodError(evaluation.failures())
    return read_results(out)
