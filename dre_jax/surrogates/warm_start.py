"""Configurations to evaluate first: those that would have left the least regret on past tasks.

A set of configurations is as good as its best member is on every task (Wistuba and Grabocka 2021, equation 12),

    X = arg min over sets of I of sum over tasks of min over x in X of the normalised regret of x,

found by an evolutionary search as they describe it (section 6), which here starts from the greedy set too.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from jax import Array

from dre_jax.data.spaces import SearchSpace, Task
from dre_jax.data.tasks import unit_scale
from dre_jax.errors import ConfigError

_POPULATION = 64
N_START = 4
"""Configurations that are tried first on a new task."""
_BEST_ROWS = 10  # of a task, that may be tried first
_MOST_ROWS = 1000  # of a task, that are searched for the nearest


def warm_start(meta: SearchSpace, candidates: np.ndarray, n: int, key: Array, *, steps: int = 5000) -> np.ndarray:
    """Rows of the candidates to evaluate first.

    Args:
      meta: its training tasks are what is minimised over.
      candidates: [N, D], distinct rows.
      n: I, how many; the paper takes 5.
      key: PRNG key.
      steps: of the search; the paper takes 100,000.

    Returns:
      i64[n], distinct, in no particular order.

    Raises:
      DataError: without training tasks.
      ConfigError: for an n that is not within 1 and N.

    Example:
      >>> x = np.array([[0.0], [0.5], [1.0]], np.float32)
      >>> tasks = {"a": Task("a", x, np.array([1.0, 0.9, 0.0])), "b": Task("b", x, np.array([0.0, 0.9, 1.0]))}
      >>> warm_start(SearchSpace("toy", train=tasks), x, 1, jax.random.key(0)).tolist()
      [1]
    """
    tasks = meta.require_train_tasks()
    if not 1 <= n <= len(candidates):
        raise ConfigError(f"1 <= n <= N must hold, but got n={n} of N={len(candidates)} candidates")
    return least_regret(regrets(tasks, candidates), n, key, steps=steps)


def start_rows(tasks: Mapping[str, Task], n: int, seed: int) -> np.ndarray:
    """Configurations to try first: of those that were best on some task, the set that leaves the least regret on all.

    It grows by the configuration that lowers the mean most. Of a large task the best rows count and as many others as
    can be searched in a moment.

    Args:
      tasks: at least one.
      n: how many, at most.
      seed: equally good ones fall by chance.

    Returns:
      f32[n, D], or fewer where fewer are different.

    Example:
      >>> x = np.array([[0.0], [0.5], [1.0]], np.float32)
      >>> tasks = {"a": Task("a", x, np.array([1.0, 0.9, 0.0])), "b": Task("b", x, np.array([0.0, 0.9, 1.0]))}
      >>> start_rows(tasks, 1, seed=0).tolist()
      [[0.5]]
    """
    random = np.random.default_rng(seed)
    best = [task.X[np.argsort(-task.y, kind="stable")[:_BEST_ROWS]] for task in tasks.values()]
    rows: np.ndarray = np.unique(np.concatenate(best), axis=0)
    rows = rows[random.permutation(len(rows))]
    known = {name: _thinned(task, random) for name, task in tasks.items()}
    return rows[greedy(regrets(known, rows), min(n, len(rows)))]


def _thinned(task: Task, random: np.random.Generator) -> Task:
    """At most so many rows of a task, the best among them."""
    if task.n_rows <= _MOST_ROWS:
        return task
    order = np.argsort(-task.y, kind="stable")
    others = random.choice(order[_BEST_ROWS:], _MOST_ROWS - _BEST_ROWS, replace=False)
    kept = np.concatenate([order[:_BEST_ROWS], others])
    return Task(task.name, task.X[kept], task.y[kept])


def regrets(tasks: Mapping[str, Task], x: np.ndarray) -> np.ndarray:
    """Normalised regret of configurations on every task, that of the nearest row of its table; [N, D] -> f64[T, N].

    Where a configuration is in the table this is its own regret. Elsewhere the paper asks its surrogate.
    """
    from scipy.spatial import cKDTree

    x = np.asarray(x, np.float32)
    found = [1.0 - unit_scale(task.y)[cKDTree(task.X).query(x)[1]] for task in tasks.values()]
    return np.stack(found)


def set_loss(regret: np.ndarray, rows: np.ndarray) -> float:
    """Regret that is left after a set, summed over tasks (equation 12); f64[T, N] and i64[n]."""
    return float(regret[:, rows].min(axis=1).sum())


def least_regret(regret: np.ndarray, n: int, key: Array, *, steps: int = 5000) -> np.ndarray:
    """A set of n with little of the regret f64[T, N]: mutations and crossovers from the greedy set and random ones."""
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
    # Equally good rows fall by chance, never by position: a table may be sorted by what is to be found.
    place = random.permutation(regret.shape[1])
    regret = regret[:, place]
    likely = np.exp(-regret.min(axis=0))
    likely = likely / likely.sum()
    population = [greedy(regret, n)]
    population += [random.choice(len(likely), n, replace=False, p=likely) for _ in range(_POPULATION - 1)]
    losses = [set_loss(regret, rows) for rows in population]
    for _ in range(steps):
        parents = random.integers(_POPULATION, size=2)
        if random.random() < 0.5:
            child = _mutated(population[parents[0]], likely, random)
        else:
            union = np.unique(np.concatenate([population[i] for i in parents]))
            child = random.choice(union, n, replace=False)
        loss, worst = set_loss(regret, child), int(np.argmax(losses))
        if loss < losses[worst]:
            population[worst], losses[worst] = child, loss
    return np.asarray(place[population[int(np.argmin(losses))]], np.int64)


def greedy(regret: np.ndarray, n: int) -> np.ndarray:
    """The set that grows by the configuration which lowers the loss most; f64[T, N] -> i64[n]."""
    left = np.full(len(regret), np.inf)
    rows: list[int] = []
    for _ in range(n):
        losses = np.minimum(regret, left[:, None]).sum(axis=0)
        losses[rows] = np.inf
        rows.append(int(np.argmin(losses)))
        left = np.minimum(left, regret[:, rows[-1]])
    return np.array(rows, np.int64)


def _mutated(rows: np.ndarray, likely: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One member, taken at random, is replaced by another."""
    child = rows.copy()
    new = random.choice(len(likely), p=likely)
    if new not in rows:
        child[random.integers(len(rows))] = new
    return child
