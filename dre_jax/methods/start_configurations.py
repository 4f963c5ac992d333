"""Configurations to evaluate first: those with the least regret on past tasks.

A set of configurations is as good as its best member is on every task (Wistuba and Grabocka 2021, equation 12),

    X = arg min over sets of I of sum over tasks of min over x in X of the normalised regret of x.

The set here grows one configuration at a time; the paper searches by mutations and crossovers (section 6).
"""

from collections.abc import Mapping

import numpy as np

from dre_jax.data.spaces import Task
from dre_jax.data.tasks import unit_scale

_BEST_ROWS = 10  # of a task, the candidates for the start
_MOST_ROWS = 1000  # of a task, searched for the nearest row


def start_rows(tasks: Mapping[str, Task], n: int | None, seed: int) -> np.ndarray:
    """Returns configurations f32[n, D] to try first, from the best of each task: the set of least regret on all tasks.

    The set grows by the configuration that lowers the mean regret most. Of a large task, the best rows count, and as
    many others as can be searched in a moment. The default is two configurations, as each costs a trial if past tasks
    mislead. It is four after a single past task: one past task cannot show how similar tasks are, and its best rows may
    be far from each other. The result has fewer rows if fewer are different. The seed breaks ties.
    """
    n = (4 if len(tasks) == 1 else 2) if n is None else n
    random = np.random.default_rng(seed)
    best = [task.X[np.argsort(-task.y, kind="stable")[:_BEST_ROWS]] for task in tasks.values()]
    rows: np.ndarray = np.unique(np.concatenate(best), axis=0)
    rows = rows[random.permutation(len(rows))]
    thinned_tasks = {name: _thin_task(task, random) for name, task in tasks.items()}
    return rows[greedy(regrets(thinned_tasks, rows), min(n, len(rows)))]


def _thin_task(task: Task, random: np.random.Generator) -> Task:
    """Returns a task with at most `_MOST_ROWS` rows, its best rows among them."""
    if task.n_rows <= _MOST_ROWS:
        return task
    order = np.argsort(-task.y, kind="stable")
    other_rows = random.choice(order[_BEST_ROWS:], _MOST_ROWS - _BEST_ROWS, replace=False)
    rows = np.concatenate([order[:_BEST_ROWS], other_rows])
    return Task(task.name, task.X[rows], task.y[rows])


def regrets(tasks: Mapping[str, Task], x: np.ndarray) -> np.ndarray:
    """Returns normalised regrets on every task, those of the nearest rows of its table; [N, D] -> f64[T, N].

    The regret of a configuration in the table is its own. For others, the paper uses a surrogate.
    """
    from scipy.spatial import cKDTree

    x = np.asarray(x, np.float32)
    return np.stack([1.0 - unit_scale(task.y)[cKDTree(task.X).query(x)[1]] for task in tasks.values()])


def greedy(regret: np.ndarray, n: int) -> np.ndarray:
    """Returns a set of rows that grows by the row that reduces the loss most; f64[T, N] -> i64[n]."""
    least = np.full(len(regret), np.inf)
    rows: list[int] = []
    for _ in range(n):
        losses = np.minimum(regret, least[:, None]).sum(axis=0)
        losses[rows] = np.inf
        rows.append(int(np.argmin(losses)))
        least = np.minimum(least, regret[:, rows[-1]])
    return np.array(rows, np.int64)
