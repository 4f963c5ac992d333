"""Published results on HPO-B: which files of traces there are, and of which protocol.

The files are those of HPO-B's repository and of the papers' own, in HPO-B's result format. They are not part of this
package.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from dre_jax.data import Results, read_results
from dre_jax.data.results import Trace
from dre_jax.errors import DataError, DataWarning
from dre_jax.report.comparison import pluralize
from dre_jax.report.result_files import ResultFile

Protocol = Literal["discrete", "continuous"]


PUBLISHED: Mapping[Protocol, tuple[str, ...]] = {
    "discrete": (
        *("DRE", "FSBO2", "FSBO", "RGPE", "TAF", "TST", "DGP", "GP", "BOHAMIANN", "DNGO", "Random"),
        *("NAP", "OptFormer-NAP"),
    ),
    "continuous": (
        *("OptFormer-EI-C", "OptFormer-C", "HyperBO-C", "FSBO-C", "Vizier-C", "DGP-C", "GP-C", "Random-C", "RS-C"),
    ),
}
"""Names of the files, without their ending, by protocol: rows of tables, or the continuous surrogates of HPO-B.
`docs/results/hpo-b.md` has the papers."""


def read_published(folder: str | os.PathLike[str], protocol: Protocol) -> dict[str, Results]:
    """Reads the files of known methods in a folder, by the method's name.

    Raises:
      DataError: for a folder without such a file, or a damaged file.
    """
    paths = {name: path for name in PUBLISHED[protocol] if (path := Path(folder) / f"{name}.json").is_file()}
    if not paths:
        raise DataError(f"{os.fspath(folder)}: must hold published traces such as DRE.json or GP.json, but holds none")
    return {name: read_results(path) for name, path in paths.items()}


def published_files(folder: str | os.PathLike[str], own: Mapping[str, Results]) -> dict[str, ResultFile]:
    """Returns the runs of a user's results by published methods that have all of them, by the method's name.

    Args:
      folder: holds files of `PUBLISHED`.
      own: the user's results; those of a continuous search are compared with methods of that protocol.

    Raises:
      DataError: as `read_published`, or if no method has all runs.

    Warns:
      DataWarning: of the methods that lack runs, and are left out.
    """
    is_continuous = any("continuous" in str(results.meta.get("protocol")) for results in own.values())
    published = read_published(folder, "continuous" if is_continuous else "discrete")
    runs = {run[:3] for results in own.values() for run in results.runs()}
    lacking = {name: len(runs - {run[:3] for run in results.runs()}) for name, results in published.items()}
    complete = [name for name, count in lacking.items() if not count and name not in own]
    if left_out := [f"{name} lacks {count}" for name, count in lacking.items() if count]:
        text = f"published methods without all {pluralize(len(runs), 'run')} are left out: {', '.join(left_out)}"
        if not complete:
            raise DataError(text)
        warnings.warn(text, DataWarning, stacklevel=3)
    return {name: ResultFile(Path(folder) / f"{name}.json", _of_runs(published[name], runs)) for name in complete}


def _of_runs(results: Results, runs: Collection[tuple[str, str, str]]) -> Results:
    traces: dict[str, dict[str, dict[str, Trace]]] = {}
    for space, dataset, seed, trace in results.runs():
        if (space, dataset, seed) in runs:
            traces.setdefault(space, {}).setdefault(dataset, {})[seed] = trace
    return replace(results, traces=traces)
