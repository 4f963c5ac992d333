"""Metis (Li et al. 2018, USENIX ATC): three proposals from a Gaussian process, and the most promising is taken.

Before every trial a Gaussian process is fitted to the history, and up to three candidates are proposed:

- exploration: the one with the largest predicted deviation ("lowest confidence");
- exploitation: the one with the largest ratio l(x) / g(x) of Parzen estimators of the better and of the worse trials;
- resampling: the trial that is furthest outside of the interval mu +- 2.326 sigma (98 %) that the other trials predict
  for it. Noisy objectives are evaluated there again. A table would give the same response again, so the nearest pending
  candidate is proposed instead.

The information gain of a proposal is the optimistic end of its interval less the best expected mean so far, mu(x) +
2.326 sigma(x) - max_j mu(x_j). The proposal of the largest gain is evaluated. If no gain is positive, a random
candidate is.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import Checked, Positive, Share
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.kernels import LOG_2PI, squared_distances
from dre_jax.gp.regression import gp_posterior, leave_one_out
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.entries.entry import Entry
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import NoMetaLearning

_NARROWEST, _WIDEST = 0.03, 1.0  # of a kernel on [0, 1]


def bandwidths(x: Array, where: Array) -> Array:
    """Returns the bandwidth of each column by Scott's rule, deviation times n^(-1 / (D + 4)); f[n, D] -> f[D].

    Kept between 0.03 and 1: a column that is constant so far does not exclude the rest of its range.
    """
    count = jnp.maximum(jnp.sum(where, dtype=x.dtype), 1.0)
    mean = jnp.sum(jnp.where(where[:, None], x, 0.0), axis=0) / count
    variance = jnp.sum(jnp.where(where[:, None], (x - mean[None, :]) ** 2, 0.0), axis=0) / count
    width = jnp.sqrt(variance) * count ** (-1.0 / (x.shape[-1] + 4))
    return jnp.clip(width, _NARROWEST, _WIDEST)


def log_parzen(x: Array, where: Array, new: Array) -> Array:
    """Returns the log-density of a mixture with equal weights: a Gaussian on each row, and one uniform on [0, 1]^D.

    f[n, D], bool[n] and f[m, D] -> f[m]; 0, the uniform's, where there is no row.
    """
    width = bandwidths(x, where)
    squared = jnp.sum(((new[:, None, :] - x[None, :, :]) / width[None, None, :]) ** 2, axis=-1)
    kernels = -0.5 * squared - jnp.sum(jnp.log(width)) - 0.5 * x.shape[-1] * LOG_2PI
    kernels = jnp.where(where[None, :], kernels, -jnp.inf)
    uniform = jnp.zeros((new.shape[0], 1), x.dtype)
    count = jnp.sum(where, dtype=x.dtype) + 1.0
    return jax.nn.logsumexp(jnp.concatenate([kernels, uniform], axis=1), axis=1) - jnp.log(count)


@dataclass(frozen=True, kw_only=True)
class Metis(NoMetaLearning, Checked):
    """Exploration, exploitation and outliers propose; the largest information gain is evaluated.

    Raises `ConfigError` if a number is out of range.
    """

    fitting: GPConfig = field(default_factory=GPConfig)
    """Search for hyperparameters."""
    interval: Positive[float] = 2.326
    """Deviations on both sides of the mean: 98 %."""
    better: Share[float] = 0.25
    """Share of the trials that counts as good."""

    def acquire(self, params: None, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns 1 for the candidate to evaluate, and 0 for all others; only 0 if no proposal has a gain."""
        y = standardise(history.response, history.where).y
        process = fit_gp(self.fitting, history.x, y, history.where)
        mean, variance = gp_posterior(process, history.x, y, history.where, candidates.x)
        deviation = jnp.sqrt(variance)
        fitted, _ = gp_posterior(process, history.x, y, history.where, history.x)
        best = jnp.max(jnp.where(history.where, fitted, -jnp.inf))
        left_out = leave_one_out(process, history.x, y, history.where)
        surprise = jnp.where(history.where, jnp.abs(y - left_out.mean) / left_out.deviation, 0.0)
        outlier = jnp.argmax(surprise)
        nearness = -squared_distances(candidates.x, history.x[outlier][None])[:, 0]
        proposals = [
            (deviation, jnp.bool_(True)),
            (good_over_bad(self.better, history, candidates.x), jnp.bool_(True)),
            (nearness, surprise[outlier] > self.interval),
        ]
        # Equal proposals are drawn by key too: the order of the rows must not matter.
        coins = jax.random.uniform(key, mean.shape)
        gain = mean + self.interval * deviation - best
        rows = jnp.stack([_first(values, coins, candidates.where) for values, _ in proposals])
        is_allowed = jnp.stack([allowed for _, allowed in proposals])
        gains = jnp.where(is_allowed & candidates.where[rows], gain[rows], -jnp.inf)
        largest = jnp.argmax(gains)
        is_largest = jnp.arange(mean.shape[0]) == rows[largest]
        return (is_largest & (gains[largest] > 0)).astype(mean.dtype)


def _first(values: Array, coins: Array, where: Array) -> Array:
    """Returns the index of the highest value, among equal values that of the highest coin."""
    top = jnp.max(jnp.where(where, values, -jnp.inf))
    return jnp.argmax(jnp.where(where & (values == top), coins, -1.0))


def good_over_bad(better: float, history: History, x: Array) -> Array:
    """Returns log l(x) - log g(x) (Bergstra et al. 2011, equation 15); f32[m, D] -> f32[m].

    l is estimated from this share of the trials, rounded up; tied trials are on the same side.
    """
    count = jnp.ceil(better * jnp.sum(history.where, dtype=jnp.float32)).astype(jnp.int32)
    levels = jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max)
    last_good = jnp.sort(levels)[jnp.maximum(count - 1, 0)]
    good = history.where & (levels <= last_good)

    def log_ratio(rows: Array) -> Array:
        return log_parzen(history.x, good, rows) - log_parzen(history.x, history.where & ~good, rows)

    return by_blocks(log_ratio, x)


ENTRIES = (
    Entry(
        name="metis",
        summary="Gaussian process; exploration, exploitation and outliers propose, the largest gain is taken",
        paper="Li et al. 2018",
        default=Metis(),
    ),
)
