"""A comparison as plain numbers: `summary.json`, `ranks.csv` and `regret.csv`."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.data import lengths
from dre_jax.data.files import write_json, write_text
from dre_jax.report.comparison import Comparison, Over
from dre_jax.report.result_files import ResultFile
from dre_jax.report.statistics import Significance, Significances
from dre_jax.version import __version__


def summarise(
    comparison: Comparison,
    files: Mapping[str, ResultFile],
    significances: Significances,
    *,
    at: Sequence[int],
    reference: str,
    title: str,
) -> dict[str, Any]:
    """The numbers of the report, as JSON; null stands for an undefined number.

    The keys `methods`, `runs`, `average_rank`, `average_regret`, `rank_at` and `regret_at` are those of pooled runs, as
    in HPO-B. `over_spaces` holds the same averages as means over search spaces. Each has the standard error of its own
    averages.
    """
    return _plain(
        {
            "title": title,
            "methods": comparison.methods,
            "runs": len(comparison.runs),
            "tasks": len(set(comparison.tasks)),
            "trials": comparison.n_trials,
            "at": at,
            **_averages(comparison, at, "runs"),
            "over_spaces": _averages(comparison, at, "spaces"),
            "spaces": {name: _space(comparison.of_space(name), at) for name in comparison.spaces},
            "significance": {
                unit: {str(trial): _tests(result) for trial, result in by_trial.items()}
                for unit, by_trial in significances.items()
            },
            "differences": {
                "reference": reference,
                "runs": _differences(comparison, reference, at, "runs"),
                "spaces": _differences(comparison, reference, at, "spaces"),
            },
            "win_tie_loss": {
                "reference": reference,
                "unit": "runs",
                "at": {str(trial): _wins(comparison, reference, trial) for trial in at},
            },
            "dropped": comparison.dropped,
            "missing": comparison.missing,
            "files": {name: _file(file) for name, file in files.items()},
            "versions": {"dre_jax": __version__} | {name: version(name) for name in ("numpy", "scipy", "matplotlib")},
        }
    )


def write_summary(summary: Mapping[str, Any], out: Path) -> None:
    """Writes `summary.json`, `ranks.csv` and `regret.csv`: a column for the trial and one for each method, pooled."""
    write_json(out / "summary.json", summary, indent=1)
    for name, key in (("ranks.csv", "average_rank"), ("regret.csv", "average_regret")):
        write_text(out / name, _csv(summary["methods"], summary[key]))


def _averages(comparison: Comparison, at: Sequence[int], over: Over) -> dict[str, Any]:
    rank = _by_method(comparison, comparison.average_rank(over))
    regret = _by_method(comparison, comparison.average_regret(over))
    return {
        "average_rank": rank,
        "average_regret": regret,
        "rank_at": _at(rank, at),
        "regret_at": _at(regret, at),
        "standard_error": {
            "over": "tasks" if over == "runs" else "tasks within search spaces",
            "average_rank": _by_method(comparison, comparison.rank_error(over)),
            "average_regret": _by_method(comparison, comparison.standard_error(over)),
        },
    }


def _space(comparison: Comparison, at: Sequence[int]) -> dict[str, Any]:
    averages = _averages(comparison, at, "runs")
    counts = {"runs": len(comparison.runs), "tasks": len(set(comparison.tasks))}
    return counts | {key: averages[key] for key in ("rank_at", "regret_at")}


def _by_method(comparison: Comparison, values: npt.NDArray[np.float64]) -> dict[str, list[float]]:
    return dict(zip(comparison.methods, values.tolist(), strict=True))


def _at(values: Mapping[str, Sequence[float]], at: Sequence[int]) -> dict[str, dict[str, float]]:
    return {str(trial): {name: value[trial] for name, value in values.items()} for trial in at}


def _tests(result: Significance) -> dict[str, Any]:
    return {
        "n": result.n,
        "average_rank": dict(zip(result.methods, result.average_rank.tolist(), strict=True)),
        "friedman_statistic": result.friedman_statistic,
        "friedman_p": result.friedman_p,
        "wilcoxon_p": {
            method: dict(zip(result.methods, row, strict=True))
            for method, row in zip(result.methods, result.wilcoxon_p.tolist(), strict=True)
        },
        "alpha": result.alpha,
        "cliques": result.cliques,
    }


def _differences(comparison: Comparison, reference: str, at: Sequence[int], over: Over) -> dict[str, Any]:
    """By trial and method, the mean paired difference to the reference, and its standard error."""
    paired = comparison.differences(reference)
    parts = np.stack([paired.average_regret(over), paired.standard_error(over)], axis=-1)
    return {str(trial): _by_method(comparison, parts[:, trial]) for trial in at}


def _wins(comparison: Comparison, reference: str, trial: int) -> dict[str, dict[str, int]]:
    return {name: counts._asdict() for name, counts in comparison.win_tie_loss(reference, trial).items()}


def _file(file: ResultFile) -> dict[str, Any]:
    by_length = {length - 1: count for length, count in lengths(file.results).items()}
    return {
        "file": file.path.name,
        "runs": sum(by_length.values()),
        "trials": max(by_length),
        "meta": file.results.meta,
    }


def _plain(value: Any) -> Any:
    """A copy with lists for tuples and None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv(methods: Sequence[str], values: Mapping[str, Sequence[float]]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", *methods])
    columns = [values[name] for name in methods]
    rows.writerows([trial, *numbers] for trial, numbers in enumerate(zip(*columns, strict=True)))
    return text.getvalue()
