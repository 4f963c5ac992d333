"""Tables of regret on live tasks, over families.

**Non-inferiority.** A tuner is not inferior to the best of its rivals, at a number of trials, if it is behind it by no
more than a margin, with 95 % confidence: a factor of two in the mean logarithm of regret, and in mean regret two
hundredths of the way from the optimum to the median random point. The margins were set before any task of the families
for reports was run. The best rival is that of the lowest mean on the very tasks, which favours the rivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markdown_tables import markdown_table, mean_cell

_LEAST = 1e-8
_NO_PAST = "none"
_FIRST = "recommended"
MARGIN, LOG_MARGIN = 0.02, float(np.log10(2.0))
"""Of mean regret, and of the mean of its logarithm to the base of ten."""
_ONE_SIDED = 1.645

Floats = npt.NDArray[np.float64]


def tables(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """Mean regret of every tuner with every past, and the mean of its logarithm, over families.

    Args:
      regrets: after every trial, by study.
      at: numbers of trials.
    """
    families = list(dict.fromkeys(study.family for study in regrets))
    heads = ["past", "tuner", *(f"regret at {t}" for t in at), *(f"log10 at {t}" for t in at)]
    rows = []
    for past, tuner in dict.fromkeys((study.past, study.tuner) for study in regrets):
        # Families count alike, whatever the number of their tasks.
        of_past = {study: one for study, one in regrets.items() if study.past == past}
        each = [_at(of_past, tuner, family, at) for family in families]
        plain = [mean_cell(means, 4) for means in zip(*(one.mean(axis=0) for one in each), strict=True)]
        logs = [mean_cell(means, 2) for means in zip(*(_log(one).mean(axis=0) for one in each), strict=True)]
        rows.append([past, f"`{tuner}`", *plain, *logs])
    n_tasks = len({(study.family, study.replicate, study.task) for study in regrets})
    lead = f"{len(families)} families, {n_tasks} tasks; ± standard error over families."
    return f"{lead}\n\n{markdown_table(heads, rows)}"


def non_inferiority(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """How far the recommended method is behind the best of the others, for each past and number of trials.

    Cells are the upper end of the one-sided 95 % interval of the difference, paired by task; negative: ahead.
    """
    pasts = list(dict.fromkeys(study.past for study in regrets if study.past != _NO_PAST))
    heads = ["past", *(f"regret at {t}" for t in at), *(f"log10 at {t}" for t in at)]
    rows = []
    for past in pasts:
        of_past = {s: r for s, r in regrets.items() if s.past in (past, _NO_PAST)}
        plain, logs = _behind(of_past, at, lambda r: r), _behind(of_past, at, _log)
        cells = [f"{_marked(value, MARGIN, 3)}" for value in plain] + [_marked(v, LOG_MARGIN, 2) for v in logs]
        rows.append([past, *cells])
    lead = (
        f"Upper 95 % bounds of what it is behind the best other by; margins {MARGIN} and {LOG_MARGIN:.2f}, beyond: *."
    )
    return f"{lead}\n\n{markdown_table(heads, rows)}"


def _marked(value: float, margin: float, digits: int) -> str:
    return f"{value:+.{digits}f}{'*' if value > margin else ''}"


def _behind(
    regrets: Mapping[Any, Sequence[float]], at: Sequence[int], scale: Callable[[Floats], Floats]
) -> Iterator[float]:
    """Upper bounds, for each number of trials."""
    families = list(dict.fromkeys(study.family for study in regrets))
    rivals = [tuner for tuner in dict.fromkeys(study.tuner for study in regrets) if tuner != _FIRST]
    by_tuner = {tuner: [scale(_at(regrets, tuner, family, at)) for family in families] for tuner in (_FIRST, *rivals)}
    for i in range(len(at)):
        best = min(rivals, key=lambda tuner: float(np.mean([one[:, i].mean() for one in by_tuner[tuner]])))
        pairs = [a[:, i] - b[:, i] for a, b in zip(by_tuner[_FIRST], by_tuner[best], strict=True)]
        # Families are fixed, tasks are drawn.
        error = np.sqrt(sum(pair.var(ddof=1) / len(pair) for pair in pairs)) / len(pairs)
        yield float(np.mean([pair.mean() for pair in pairs]) + _ONE_SIDED * error)


def _log(regrets: Floats) -> Floats:
    return np.log10(np.maximum(regrets, _LEAST))


def _at(regrets: Mapping[Any, Sequence[float]], tuner: str, family: str, at: Sequence[int]) -> Floats:
    studies = sorted(study for study in regrets if (study.tuner, study.family) == (tuner, family))
    rows = [regrets[study] for study in studies]
    return np.array(rows)[:, [t - 1 for t in at]]
