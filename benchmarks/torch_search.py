"""The reference's suggestion: expected improvement over ranks, in plain Python."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from benchmarks.torch_reference import Batch, Ensemble, Table
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
    generator: torch.Generator,
) -> int:
    """Number of the candidate that is evaluated next (the paper, Algorithm 2, line 4)."""
    everyone = torch.cat([candidates, incumbent[None]])
    with torch.no_grad():
        scores = ensemble([Batch(history.x[None], history.y[None], everyone[None], torch.zeros(1, 0))])
    values = expected_improvement(rank(torch.cat(scores).cpu().numpy()), logarithm=not ensemble.published)
    best = np.flatnonzero(values == values.max())
    return int(best[0 if ensemble.published else int(torch.randint(len(best), (), generator=generator))])
