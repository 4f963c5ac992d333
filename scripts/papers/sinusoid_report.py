"""The motivating example in numbers: the steps, the members' outputs, and the trials that meta-training saves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dre_jax import Task
from papers.inside import Inside
from papers.plots import markdown_table
from papers.sinusoid import N_INITIAL, X, is_reached
from papers.transfer import Traces, trials_to_reach


class Outputs(NamedTuple):
    """Agreement of the members' outputs in scale, over the rows that are ranked."""

    ranges: np.ndarray
    """f64[M]: largest less smallest output of each member."""
    spread_of_ranges: float
    """Largest range over smallest: 1 where all members are on one scale."""
    between: float
    """Share of the variance of all outputs that is between the members' means: 0 where all are on one level."""


def outputs(values: np.ndarray) -> Outputs:
    """Scores or ranks f32[M, rows] in numbers."""
    values = np.asarray(values, np.float64)
    ranges = np.ptp(values, axis=1)
    return Outputs(ranges, float(ranges.max() / ranges.min()), float(values.mean(axis=1).var() / values.var()))


def expected_by_chance(task: Task) -> float:
    """Trials that random search needs on average, drawing without replacement from what the design leaves."""
    return (task.n_rows - N_INITIAL + 1) / (int(is_reached(task.y).sum()) + 1)


def step_table(task: Task, steps: list[Inside]) -> str:
    """One row per step of a run."""
    rows = []
    for i, step in enumerate(steps):
        best = step.rows[np.argmax(task.y[step.rows])]
        c = step.chosen
        numbers = [f"{X[best]:.1f}", f"{task.y[best]:.3f}", f"{X[c]:.1f}", f"{task.y[c]:.3f}"]
        rank = [
            f"{step.mean[c]:.1f} ± {step.deviation[c]:.1f}",
            f"{step.mean[best]:.1f}",
            f"{np.exp(step.log_ei[c]):.2f}",
        ]
        rows.append([str(i + 1), str(len(step.rows)), *numbers, *rank])
    head = ["step", "observed", "best x", "best y", "next x", "next y", "rank of next", "rank of best", "EI of next"]
    return markdown_table(head, rows)


def output_table(step: Inside) -> str:
    """Scores and ranks of one step on their scales."""
    rows = []
    for name, values in (("scores", step.scores), ("ranks", step.ranks)):
        found = outputs(values[:, step.ranked])
        low, high = found.ranges.min(), found.ranges.max()
        rows.append([name, f"{low:.3g}", f"{high:.3g}", f"{found.spread_of_ranges:.3g}", f"{found.between:.1%}"])
    return markdown_table(
        ["output", "smallest range", "largest range", "ratio", "variance between members' means"], rows
    )


def transfer_table(traces: Traces, tasks: dict[str, Task]) -> str:
    """Trials to within 1 % of the optimum; a run that never got there counts with all its trials."""
    rows = []
    for dataset, methods in traces.items():
        for name, incumbents in methods.items():
            found = trials_to_reach(incumbents)
            budget = incumbents.shape[1] - 1
            counted = np.where(np.isnan(found), budget, found)
            missing = int(np.isnan(found).sum())
            spread = f"{counted.mean():.1f} ± {counted.std(ddof=1):.1f}" if len(counted) > 1 else f"{counted[0]:.1f}"
            shares = [f"{np.mean(found <= t):.0%}" for t in (1, 5, 10)]
            rows.append([dataset, name, spread, f"{np.median(counted):g}", *shares, f"{missing} of {len(found)}"])
        rows.append([dataset, "random search, expected", f"{expected_by_chance(tasks[dataset]):.1f}", *["–"] * 5])
    head = ["task", "method", "trials, mean ± sd", "median", "within 1", "within 5", "within 10", "never"]
    return markdown_table(head, rows)


def as_json(steps: list[Inside], traces: Traces) -> dict[str, Any]:
    """The runs in full."""
    return {
        "steps": [{"observed": X[step.rows].tolist(), "next": float(X[step.chosen])} for step in steps],
        "incumbents": {task: {name: v.tolist() for name, v in methods.items()} for task, methods in traces.items()},
    }
