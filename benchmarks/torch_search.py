"""The reference's side of a run: expected improvement over ranks, and the loop over trials, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from benchmarks.torch_reference import Batch, Decisions, Ensemble, Table, fine_tune, tensors
from dre_jax.data.spaces import Task
from dre_jax.data.tasks import unit_scale
from dre_jax.methods.baselines.host_tables import log_expected_improvement

_SMALLEST_DEVIATION = 1e-9


def rank(scores: np.ndarray) -> np.ndarray:
    """Ranks f64[M, n] of scores [M, n], 1 the highest, ties share the mean rank."""
    return stats.rankdata(-scores, method="average", axis=-1)


def expected_improvement(ranks: np.ndarray, logarithm: bool) -> np.ndarray:
    """Of the mean rank of each candidate on the incumbent's, which stands last; f64[M, n + 1] -> f64[n]."""
    mean, deviation = ranks.mean(axis=0), np.maximum(ranks.std(axis=0), _SMALLEST_DEVIATION)
    gain, deviation = mean[-1] - mean[:-1], deviation[:-1]
    if logarithm:
        return log_expected_improvement(gain, deviation, 0.0)
    z = gain / deviation
    return gain * stats.norm.cdf(z) + deviation * stats.norm.pdf(z)


def suggest(
    ensemble: Ensemble,
    history: Table,
    incumbent: Tensor,
    candidates: Tensor,
    decisions: Decisions,
    generator: torch.Generator,
) -> int:
    """Number of the candidate that is evaluated next (the paper, Algorithm 2, line 4)."""
    everyone = torch.cat([candidates, incumbent[None]])
    with torch.no_grad():
        scores = ensemble([Batch(history.x[None], history.y[None], everyone[None], torch.zeros(1, 0))])
    values = expected_improvement(rank(torch.cat(scores).cpu().numpy()), decisions.logarithm)
    best = np.flatnonzero(values == values.max())
    return int(best[0 if decisions.equal_values == "first" else int(torch.randint(len(best), (), generator=generator))])


def optimise(
    checkpoint: Ensemble,
    task: Task,
    design: Sequence[int],
    decisions: Decisions,
    *,
    trials: int,
    seed: int,
    **tuning: Any,
) -> np.ndarray:
    """One run: f64[trials + 1], the best response after the design and after each trial, scaled with the table.

    As in HPO-B's handler, nothing more is evaluated once the table's best response is found. ``tuning`` is as for
    `fine_tune`: epochs, learning_rate and fused.
    """
    generator = torch.Generator().manual_seed(seed)
    table, response = tensors(task), unit_scale(task.y)
    rows, last = [int(row) for row in design], None
    trace = [response[rows].max()]
    for _ in range(trials):
        if int(table.level[rows].min()) > 0 and len(rows) < task.n_rows:
            history = Table(*(field[rows] for field in table))
            tuned = fine_tune(checkpoint, history, decisions, generator=generator, **tuning)
            best = int(history.level.argmin())
            incumbent = history.x[best] if decisions.incumbent == "best" or last is None else table.x[last]
            pending = np.setdiff1d(np.arange(task.n_rows), rows)
            last = int(pending[suggest(tuned, history, incumbent, table.x[pending], decisions, generator)])
            rows.append(last)
        trace.append(max(trace[-1], response[rows[-1]]))
    return np.array(trace)
