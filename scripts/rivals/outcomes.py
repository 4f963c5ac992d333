"""The table of rivals: regret, how far they are behind ours, seconds and lines of code."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from rivals.jobs import Study
from rivals.registry import RIVALS
from rivals.search import Search


def scaled_regret(values: np.ndarray, best: float, median: float) -> np.ndarray:
    """Returns the regrets of values, 0 at the best one and 1 at the median, of the shape of the values.

    Example:
      >>> scaled_regret(np.array([0.0, 1.0, 2.0]), best=2.0, median=1.0).tolist()
      [2.0, 1.0, 0.0]
    """
    return np.asarray((best - values) / max(best - median, 1e-12))


def standard_error(curves: np.ndarray) -> np.ndarray:
    """Returns the standard error of the mean over tasks, the first axis; 0 for one task."""
    n = len(curves)
    return np.asarray(curves.std(axis=0, ddof=1) / n**0.5) if n > 1 else np.zeros(curves.shape[1:])


def regrets(values: Sequence[float], best: float, median: float, n_design: int, trials: int) -> np.ndarray:
    """Returns the regret f64[trials + 1] after the design and after each trial.

    A table of fewer rows keeps the regret of its last row.

    Example:
      >>> regrets([0.0, 1.0, 0.5, 2.0], best=2.0, median=1.0, n_design=2, trials=3).tolist()
      [1.0, 1.0, 0.0, 0.0]
    """
    highest = np.maximum.accumulate(values)[n_design - 1 :][: trials + 1]
    highest = np.pad(highest, (0, trials + 1 - len(highest)), mode="edge")
    return scaled_regret(highest, best, median)


def frame_of(
    searches: Mapping[Study, Search], samples: Mapping[tuple[str, str], np.ndarray], at: Iterable[int], trials: int
) -> pd.DataFrame:
    """Returns regrets by study, at numbers of trials after a design of two.

    Args:
      searches: those of all rivals; the best value that any of them found counts as known.
      samples: values of all or many configurations, by family and task.
      at: numbers of trials.
      trials: number of all trials.
    """
    best = {task: float(values.max()) for task, values in samples.items()}
    for study, found in searches.items():
        task = study.family, study.task
        best[task] = max(best[task], float(np.nanmax(found.values)))
    rows = {}
    for study, found in searches.items():
        task = study.family, study.task
        curve = regrets(found.values, best[task], float(np.median(samples[task])), 2, trials)
        rows[study] = [curve[t] for t in at]
    return pd.DataFrame(rows.values(), pd.MultiIndex.from_tuples(rows, names=Study._fields), list(at))


def mean_curves(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Returns mean regrets and standard errors over tasks of each rival, by family; columns are those of the frame.

    Rivals that time did not suffice for are left out. Designs of a task are averaged.

    Args:
      frame: of `frame_of`.
    """
    means = frame.groupby(["family", "rival", "task"], sort=False).agg(lambda values: values.mean(skipna=False))
    result: dict[str, dict[str, dict[str, list[float]]]] = {}
    for (family, rival), of_tasks in means.groupby(level=["family", "rival"], sort=False):
        if not of_tasks.isna().any(axis=None):
            regret, error = of_tasks.mean(), of_tasks.sem().fillna(0.0)
            curves = {"regret": regret.round(5).tolist(), "error": error.round(5).tolist()}
            result.setdefault(family, {})[rival] = curves
    return result


def table(frame: pd.DataFrame, searches: Mapping[Study, Search]) -> str:
    """Returns mean regret of each rival, and the mean difference to the first rival on the same tasks.

    ± is the standard error over tasks, of which designs are averaged. Rivals are in the order of the registry.

    Args:
      frame: of `frame_of`.
      searches: its studies.
    """
    present = {study.rival for study in searches}
    names = [name for name in RIVALS if name in present]
    reference = names[0]
    means = frame.groupby(["rival", "family", "task"], sort=False).agg(lambda values: values.mean(skipna=False))
    of_reference = means.xs(reference, level="rival")
    heads = ["rival", "transfer", "tasks", *(f"regret at {t}" for t in frame), *(f"behind at {t}" for t in frame)]
    heads += ["seconds a suggestion", "seconds to set up", "lines to set up"]
    lines = [heads, ["---", "---", *("---:" for _ in heads[2:])]]
    for name in names:
        of_rival = means.xs(name, level="rival")
        shared = of_rival.index.intersection(of_reference.index)
        gaps = of_rival.loc[shared] - of_reference.loc[shared]
        suggestions = [s for study, found in searches.items() if study.rival == name for s in found.seconds]
        setups = [found.setup_seconds for study, found in searches.items() if study.rival == name]
        entry = RIVALS[name]
        cells = [entry.title, "yes" if entry.transfer else "no", str(len(of_rival))]
        cells += [_cell(of_rival[t], "") for t in frame]
        cells += ["" if name == reference else _cell(gaps[t], "+") for t in frame]
        median = f"{np.median(suggestions):.2f}" if suggestions else "–"
        lines.append([*cells, median, f"{np.median(setups):.1f}", str(entry.n_lines())])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"Behind: regret minus that of {RIVALS[reference].title} on the same tasks.\n\n{text}"


def _cell(values: pd.Series, sign: str) -> str:
    """Returns the mean with its standard error; a dash without tasks, or if time did not suffice for a task."""
    if values.empty or values.isna().any():
        return "–"
    error = values.sem() if len(values) > 1 else 0.0
    return f"{values.mean():{sign}.3f} ± {error:.3f}"
