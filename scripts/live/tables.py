"""Tables of regret on live tasks, over families.

**Non-inferiority.** A tuner is not inferior to the best of its rivals, at a number of trials, if it is behind it by no
more than a margin, with 95 % confidence: a factor of two in the mean logarithm of regret, and in mean regret two
hundredths of the way from the optimum to the median random point. The margins were set before any task of the families
for reports was run. The best rival is that of the lowest mean on the very tasks, which favours the rivals.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

_LEAST = 1e-8
_NO_PAST = "none"
_FIRST = "recommended"
MARGIN, LOG_MARGIN = 0.02, float(np.log10(2.0))
"""Of mean regret, and of the mean of its logarithm to the base of ten."""


def tables(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """Mean regret of every tuner with every past, and the mean of its logarithm, over families.

    Args:
      regrets: after every trial, by study.
      at: numbers of trials.
    """
    plain, logs = _frames(regrets, at)
    rows, names = [], ["past", "tuner"]
    # Families count alike, whatever the number of their tasks.
    means = (frame.groupby([*names, "family"], sort=False).mean() for frame in (plain, logs))
    for ((past, tuner), group), (_, log) in zip(*(mean.groupby(names, sort=False) for mean in means), strict=True):
        cells = [*(_mean_cell(group[t], 4) for t in at), *(_mean_cell(log[t], 2) for t in at)]
        rows.append([past, f"`{tuner}`", *cells])
    tasks = plain.index.droplevel(["tuner", "past"]).unique()
    lead = f"{len(tasks.unique('family'))} families, {len(tasks)} tasks; ± standard error over families."
    return f"{lead}\n\n{_markdown_table([*names, *_heads(at)], rows)}"


def medians(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """Median regret of every tuner with every past over all tasks: near 0 if most searches find the best optimum."""
    groups = _frames(regrets, at)[0].groupby(["past", "tuner"], sort=False)
    rows = [[past, f"`{tuner}`", *(f"{group[t].median():.4f}" for t in at)] for (past, tuner), group in groups]
    return f"Medians over tasks.\n\n{_markdown_table(['past', 'tuner', *(f'regret at {t}' for t in at)], rows)}"


def non_inferiority(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> str:
    """How far the recommended method is behind the best of the others, for each past and number of trials.

    Cells are the upper end of the one-sided 95 % interval of the difference, paired by task; negative: ahead.
    """
    rows = []
    for past in dict.fromkeys(study.past for study in regrets if study.past != _NO_PAST):
        of_past = {study: values for study, values in regrets.items() if study.past in (past, _NO_PAST)}
        plain, logs = (list(_bounds(frame, at)) for frame in _frames(of_past, at))
        rows.append([past, *(_mark_value(v, MARGIN, 3) for v in plain), *(_mark_value(v, LOG_MARGIN, 2) for v in logs)])
    lead = "Upper 95 % bounds of what it is behind the best other by"
    margins = f"margins {MARGIN} and {LOG_MARGIN:.2f}, beyond: *."
    return f"{lead}; {margins}\n\n{_markdown_table(['past', *_heads(at)], rows)}"


def paired_differences(
    regrets: Mapping[Any, Sequence[float]], tuner: str, rivals: Sequence[str], at: Sequence[int]
) -> str:
    """Mean differences of a tuner's regret and that of each rival, without a past, by family and over families.

    Cells have the standard error over tasks, which are paired; negative: ahead.
    """
    alone = {study: values for study, values in regrets.items() if study.past == _NO_PAST}
    frame = _frames(alone, at)[0].droplevel("past")
    rows = []
    for rival in rivals:
        gaps = (frame.xs(tuner, level="tuner") - frame.xs(rival, level="tuner")).groupby("family", sort=False)
        means, errors = gaps.mean(), gaps.sem()
        cells = [[name, *(f"{means.at[name, t]:+.3f} ± {errors.at[name, t]:.3f}" for t in at)] for name in means.index]
        overall = np.sqrt((errors**2).sum()) / len(errors)  # families are fixed, tasks are drawn
        cells.append(["all", *(f"{means[t].mean():+.3f} ± {overall[t]:.3f}" for t in at)])
        rows += [[f"`{rival}`", *cell] for cell in cells]
    heads = ["behind", "family", *(f"regret at {t}" for t in at)]
    return f"Regret of `{tuner}` minus that of others, ± standard error over tasks.\n\n{_markdown_table(heads, rows)}"


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in heads[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _mean_cell(values: pd.Series, digits: int) -> str:
    """The mean, with the standard error."""
    error = values.sem() if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def _heads(at: Sequence[int]) -> list[str]:
    return [f"{quantity} at {t}" for quantity in ("regret", "log10") for t in at]


def _frames(regrets: Mapping[Any, Sequence[float]], at: Sequence[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Regrets by study and number of trials, and their logarithms."""
    index = pd.MultiIndex.from_tuples(list(regrets), names=next(iter(regrets))._fields)
    frame = pd.DataFrame([[values[t - 1] for t in at] for values in regrets.values()], index, list(at))
    return frame, np.log10(frame.clip(lower=_LEAST))


def _mark_value(value: float, margin: float, digits: int) -> str:
    return f"{value:+.{digits}f}{'*' if value > margin else ''}"


def _bounds(frame: pd.DataFrame, at: Sequence[int]) -> Iterator[float]:
    """Upper bounds, for each number of trials."""
    for t in at:
        by_tuner = frame[t].droplevel("past").unstack("tuner")
        rivals = by_tuner.drop(columns=_FIRST).groupby("family").mean().mean()
        gaps = (by_tuner[_FIRST] - by_tuner[rivals.idxmin()]).groupby("family")
        # Families are fixed, tasks are drawn.
        error = np.sqrt((gaps.sem() ** 2).sum()) / gaps.ngroups
        yield float(gaps.mean().mean() + norm.ppf(0.95) * error)
