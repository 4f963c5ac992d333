"""Tables of regret on live tasks: for each kind of past, over families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markdown_tables import markdown_table

_LEAST = 1e-8
_NO_PAST = "none"

Floats = npt.NDArray[np.float64]


def tables(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """A table for each past: mean regret of every tuner, and the mean of its logarithm, over families.

    Args:
      regrets: after every trial, by study.
      at: numbers of trials.
    """
    pasts = list(dict.fromkeys(study.past for study in regrets if study.past != _NO_PAST)) or [_NO_PAST]
    parts = [_table({s: r for s, r in regrets.items() if s.past in (past, _NO_PAST)}, at, past) for past in pasts]
    return "\n\n".join(parts)


def _table(regrets: Mapping[Any, Sequence[float]], at: Sequence[int], past: str) -> str:
    families = list(dict.fromkeys(study.family for study in regrets))
    heads = ["tuner", *(f"regret at {t}" for t in at), *(f"log10 at {t}" for t in at)]
    rows = []
    for tuner in dict.fromkeys(study.tuner for study in regrets):
        # Families count alike, whatever the number of their tasks.
        each = [_at(regrets, tuner, family, at) for family in families]
        plain = _summary([one.mean(axis=0) for one in each])
        logs = _summary([np.log10(np.maximum(one, _LEAST)).mean(axis=0) for one in each])
        rows.append([f"`{tuner}`", *_cells(plain, 4), *_cells(logs, 2)])
    n_tasks = len({(study.family, study.replicate, study.task) for study in regrets})
    lead = f"Past: {past}. {len(families)} families, {n_tasks} tasks; ± standard error over families."
    return f"{lead}\n\n{markdown_table(heads, rows)}"


def _at(regrets: Mapping[Any, Sequence[float]], tuner: str, family: str, at: Sequence[int]) -> Floats:
    rows = [one for study, one in regrets.items() if (study.tuner, study.family) == (tuner, family)]
    return np.array(rows)[:, [t - 1 for t in at]]


def _summary(by_family: Sequence[Floats]) -> tuple[Floats, Floats]:
    values = np.stack(by_family)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    return values.mean(axis=0), error


def _cells(summary: tuple[Floats, Floats], digits: int) -> list[str]:
    return [f"{mean:.{digits}f} ± {error:.{digits}f}" for mean, error in zip(*summary, strict=True)]
