"""The motivating example in numbers: the steps, the members' outputs, and the trials that meta-training saves."""

from __future__ import annotations

import numpy as np
from markdown_tables import markdown_table

from dre_jax import Task
from papers.inside import Inside
from papers.sinusoid import N_INITIAL, X, is_reached
from papers.transfer import Traces, trials_to_reach


def share_between(values: np.ndarray) -> float:
    """Share of the variance of all outputs that is between the members' means; f32[M, rows], 0 on one level."""
    values = np.asarray(values, np.float64)
    return float(values.mean(axis=1).var() / values.var())


def expected_by_chance(task: Task) -> float:
    """Trials that random search needs on average, drawing without replacement from what the design leaves."""
    return (task.n_rows - N_INITIAL + 1) / (int(is_reached(task.y).sum()) + 1)


def step_table(task: Task, steps: list[Inside]) -> str:
    rows = []
    for i, step in enumerate(steps, start=1):
        best, c = step.rows[np.argmax(task.y[step.rows])], step.chosen
        points = [f"{X[best]:.1f}", f"{task.y[best]:.3f}", f"{X[c]:.1f}", f"{task.y[c]:.3f}"]
        rank = f"{step.mean[c]:.1f} ± {step.deviation[c]:.1f}"
        rows.append(
            [str(i), str(len(step.rows)), *points, rank, f"{step.mean[best]:.1f}", f"{np.exp(step.log_ei[c]):.2f}"]
        )
    head = ["step", "observed", "best x", "best y", "next x", "next y", "rank of next", "rank of best", "EI of next"]
    return markdown_table(head, rows)


def output_table(step: Inside) -> str:
    rows = []
    for name, values in (("scores", step.scores), ("ranks", step.ranks)):
        ranges = np.ptp(values[:, step.ranked], axis=1)
        low, high = ranges.min(), ranges.max()
        between = share_between(values[:, step.ranked])
        rows.append([name, f"{low:.3g}", f"{high:.3g}", f"{high / low:.3g}", f"{between:.1%}"])
    return markdown_table(
        ["output", "smallest range", "largest range", "ratio", "variance between members' means"], rows
    )


def transfer_table(traces: Traces, tasks: dict[str, Task]) -> str:
    """Trials to within 1 % of the optimum; a run that never got there counts with all its trials."""
    rows = []
    for dataset, methods in traces.items():
        for name, incumbents in methods.items():
            found = trials_to_reach(incumbents)
            counted = np.where(np.isnan(found), incumbents.shape[1] - 1, found)
            spread = f" ± {counted.std(ddof=1):.1f}" if len(counted) > 1 else ""
            shares = [f"{np.mean(found <= t):.0%}" for t in (1, 5, 10)]
            never = f"{np.isnan(found).sum()} of {len(found)}"
            rows.append([dataset, name, f"{counted.mean():.1f}{spread}", f"{np.median(counted):g}", *shares, never])
        rows.append([dataset, "random search, expected", f"{expected_by_chance(tasks[dataset]):.1f}", *["–"] * 5])
    head = ["task", "method", "trials, mean ± sd", "median", "within 1", "within 5", "within 10", "never"]
    return markdown_table(head, rows)
