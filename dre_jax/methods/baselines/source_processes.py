"""Rows of past tasks for the Gaussian processes of RGPE, TST and TAF, and how well these rank trials."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.gp.response_scale import standardise
from dre_jax.gp.source_processes import SourceTasks


def draw_task_rows(meta: SearchSpace, rows: int, key: Array) -> list[np.ndarray]:
    """Returns the numbers of at most ``rows`` rows of each training task. Raises `DataError` without tasks."""
    tasks = meta.require_train_tasks().values()
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
    return [np.sort(random.permutation(task.n_rows)[:rows]) for task in tasks]


def source_tasks(meta: SearchSpace, rows: int, key: Array) -> SourceTasks:
    """Draws at most ``rows`` rows of each training task without replacement. Raises `DataError` without tasks."""
    return gather_rows(meta, draw_task_rows(meta, rows, key))


def gather_rows(meta: SearchSpace, numbers: Sequence[np.ndarray]) -> SourceTasks:
    """Returns the rows of each training task that have these numbers."""
    n = max(map(len, numbers))
    xs, ys, wheres = [], [], []
    for task, rows in zip(meta.train.values(), numbers, strict=True):
        empty = n - len(rows)
        where = np.arange(n) < len(rows)
        xs.append(np.pad(np.asarray(task.X, np.float32)[rows], ((0, empty), (0, 0))))
        # Responses are centred in float64, because float32 may round their differences to zero.
        centred_y = np.asarray(task.y, np.float64)[rows] - np.mean(task.y[rows])
        largest = np.abs(centred_y).max()
        scaled_y = (centred_y / largest if largest > 0 else centred_y).astype(np.float32)
        ys.append(standardise(*jax.device_put((np.pad(scaled_y, (0, empty)), where))).y)
        wheres.append(where)
    return SourceTasks(*jax.device_put((np.stack(xs), jnp.stack(ys), np.stack(wheres))))


def misranked_share(predictions: Array, level: Array, where: Array) -> Array:
    """Returns the share of the pairs of trials with different responses that predictions f[..., n] misrank.

    Pairs that are predicted equal count half (Feurer et al. 2018, equation 3; Wistuba et al. 2016, equation 11). Levels
    are i32[n], smaller is better, equal where responses are tied. Returns f[...]; 0 where no two responses differ.
    """
    pairs = (level[:, None] < level[None, :]) & where[:, None] & where[None, :]
    return _share(_wrong(predictions[..., :, None], predictions[..., None, :]), pairs)


def misranked_share_left_out(predictions: Array, level: Array, where: Array) -> Array:
    """Returns the share of pairs that models without one of the two trials misrank.

    Row j of the predictions f[..., n, n] is of the model without trial j. Of each model, only pairs with the trial that
    it has not seen count (Feurer et al. 2018, section 4.1).
    """
    left_out = jnp.diagonal(predictions, axis1=-2, axis2=-1)[..., :, None]
    better = level[:, None] < level[None, :]
    pairs = (level[:, None] != level[None, :]) & where[:, None] & where[None, :]
    return _share(jnp.where(better, _wrong(left_out, predictions), _wrong(predictions, left_out)), pairs)


def _wrong(better: Array, worse: Array) -> Array:
    """Returns 1 for misranked pairs, 1/2 for equal predictions, otherwise 0; a pair with NaN is misranked."""
    return jnp.where(better > worse, 0.0, jnp.where(better == worse, 0.5, 1.0)).astype(better.dtype)


def _share(wrong: Array, pairs: Array) -> Array:
    count = jnp.sum(pairs, dtype=wrong.dtype)
    return jnp.sum(jnp.where(pairs, wrong, 0.0), axis=(-2, -1)) / jnp.maximum(count, 1.0)
