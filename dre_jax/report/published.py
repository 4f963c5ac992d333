"""Published results on HPO-B: which file of traces is of which method, paper and protocol.

The files are those of HPO-B's repository and of the papers' own, in HPO-B's result format. They are not part of this
package.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from dre_jax.data import Results, read_results
from dre_jax.data.results import Trace
from dre_jax.errors import DataError, DataWarning
from dre_jax.report.comparison import pluralize
from dre_jax.report.result_files import ResultFile

Protocol = Literal["discrete", "continuous"]


class PublishedMethod(NamedTuple):
    """A method with published traces."""

    paper: str
    """Source of the method, and of the run where it differs."""
    transfer: bool
    """Whether the method learns from past tasks."""
    protocol: Protocol = "discrete"
    """Rows of tables, or the continuous surrogates of HPO-B."""
    note: str = ""
    """What is not comparable."""


_HPOB = "run of HPO-B (Pineda Arango et al. 2021)"
_NAP = "six search spaces, 115 runs"
_OPTFORMER = "run of OptFormer (Chen et al. 2022)"
PUBLISHED: Mapping[str, PublishedMethod] = {
    "DRE": PublishedMethod("Khazi, Pineda Arango and Grabocka 2023", True),
    "FSBO2": PublishedMethod("Wistuba and Grabocka 2021; second trace of HPO-B's repository", True),
    "FSBO": PublishedMethod(f"Wistuba and Grabocka 2021; {_HPOB}", True),
    "RGPE": PublishedMethod(f"Feurer, Letham and Bakshy 2018; {_HPOB}", True),
    "TAF": PublishedMethod(f"Wistuba, Schilling and Schmidt-Thieme 2018; {_HPOB}", True),
    "TST": PublishedMethod(f"Wistuba, Schilling and Schmidt-Thieme 2016; {_HPOB}", True),
    "DGP": PublishedMethod(f"Wilson et al. 2016, a deep kernel; {_HPOB}", False),
    "GP": PublishedMethod(f"Rasmussen and Williams 2006; {_HPOB}", False),
    "BOHAMIANN": PublishedMethod(f"Springenberg et al. 2016; {_HPOB}", False),
    "DNGO": PublishedMethod(f"Snoek et al. 2015; {_HPOB}", False),
    "Random": PublishedMethod(f"random search; {_HPOB}", False),
    "NAP": PublishedMethod("Maraval et al. 2023", True, note=_NAP),
    "OptFormer-NAP": PublishedMethod("Chen et al. 2022; run of NAP (Maraval et al. 2023)", True, note=_NAP),
    "OptFormer-EI-C": PublishedMethod("Chen et al. 2022, with expected improvement", True, "continuous"),
    "OptFormer-C": PublishedMethod("Chen et al. 2022", True, "continuous"),
    "HyperBO-C": PublishedMethod(f"Wang et al. 2024; {_OPTFORMER}", True, "continuous"),
    "FSBO-C": PublishedMethod(f"Wistuba and Grabocka 2021; {_OPTFORMER}", True, "continuous"),
    "Vizier-C": PublishedMethod(f"Golovin et al. 2017; {_OPTFORMER}", False, "continuous"),
    "DGP-C": PublishedMethod(f"Wilson et al. 2016, a deep kernel; {_HPOB}", False, "continuous"),
    "GP-C": PublishedMethod(f"Rasmussen and Williams 2006; {_HPOB}", False, "continuous"),
    "Random-C": PublishedMethod(f"random search; {_OPTFORMER}", False, "continuous"),
    "RS-C": PublishedMethod(f"random search; {_HPOB}", False, "continuous"),
}
"""By the name of the file, without its ending."""


def read_published(folder: str | os.PathLike[str], protocol: Protocol) -> dict[str, Results]:
    """Reads the files of known methods in a folder, by the method's name.

    Raises:
      DataError: for a folder without such a file, or a damaged file.
    """
    methods = {name: one for name, one in PUBLISHED.items() if one.protocol == protocol}
    paths = {name: path for name in methods if (path := Path(folder) / f"{name}.json").is_file()}
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
