"""The files of a comparison: the method of each, and warnings about missing runs and trials.

Published results on HPO-B can join them. Their files come from the repositories of HPO-B and of the papers, in HPO-B's
result format. They are not part of this package.
"""

import os
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from dre_jax.data import Results, read_results
from dre_jax.data.results import Trace
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.report.comparison import Comparison, pluralize

Files = Mapping[str, str | os.PathLike[str]] | Sequence[str | os.PathLike[str]]
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


class ResultFile(NamedTuple):
    """One method's result file."""

    path: Path
    results: Results


def read_files(files: Files) -> dict[str, ResultFile]:
    """Result files by method, in the order of the arguments: paths by method, or paths, perhaps as a text "NAME=PATH".

    Without a name, a method has the name in its file (`_meta.method`) if no other method has it, and otherwise that of
    its file.

    Raises `ConfigError` without files, or if two methods have one name. Raises `DataError` for a file that is not a
    result file; the message says what is wrong in it.
    """
    named_paths = list(files.items()) if isinstance(files, Mapping) else [_split(text) for text in files]
    if not named_paths:
        raise ConfigError("a report needs at least one result file, but got none")
    named_files = [(name, ResultFile(Path(path), read_results(path))) for name, path in named_paths]
    for _, file in named_files:
        if not file.results.traces:
            raise DataError(f"{file.path}: results must hold at least one run, but hold none")
    names = _names(named_files)
    return {name: file for name, (_, file) in zip(names, named_files, strict=True)}


def _split(argument: str | os.PathLike[str]) -> tuple[str | None, str | os.PathLike[str]]:
    """A name, where there is one, and a path."""
    if not isinstance(argument, str) or "=" not in argument or os.path.exists(argument):
        return None, argument
    name, path = (part.strip() for part in argument.split("=", 1))
    if not name or not path:
        raise ConfigError(f"a named result file must be NAME=FILE, but got {argument!r}")
    return name, path


def _names(named_files: Sequence[tuple[str | None, ResultFile]]) -> list[str]:
    preferred_names = [name or _method_name(file) for name, file in named_files]
    often = Counter(preferred_names)
    names = [
        name or (preferred_name if often[preferred_name] == 1 else _stem(file.path))
        for (name, file), preferred_name in zip(named_files, preferred_names, strict=True)
    ]
    for name, count in Counter(names).items():
        if count > 1:
            paths = ", ".join(
                str(file.path) for other_name, (_, file) in zip(names, named_files, strict=True) if other_name == name
            )
            raise ConfigError(f"methods must have different names (give NAME=FILE), but {name!r} is that of {paths}")
    return names


def _method_name(file: ResultFile) -> str:
    name = file.results.meta.get("method")
    return name if isinstance(name, str) and name.strip() else _stem(file.path)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json")


_METHOD_FIELDS = ("trials", "method")
"""Fields in which methods may differ: runs are cut, and a host method has a protocol of its own."""


def warn_of_differences(files: Mapping[str, ResultFile], comparison: Comparison) -> None:
    """Warns, with a `DataWarning` each, of different protocols, and of runs and trials that a comparison leaves out."""
    protocols: dict[str, list[str]] = {}
    for name, file in files.items():
        protocol = file.results.meta.get("protocol")
        if isinstance(protocol, Mapping):
            description = ", ".join(
                f"{key} {value}" for key, value in sorted(protocol.items()) if key not in _METHOD_FIELDS
            )
            protocols.setdefault(description, []).append(name)
    groups = "; ".join(f"{', '.join(names)}: {protocol}" for protocol, names in protocols.items())
    differences = [f"the methods follow different protocols: {groups}"] if len(protocols) > 1 else []
    for message in [*differences, *comparison.left_out()]:
        warnings.warn(message, DataWarning, stacklevel=3)


def read_published(folder: str | os.PathLike[str], protocol: Protocol) -> dict[str, Results]:
    """Reads the files of published methods in a folder, by the method's name.

    Raises `DataError` for a folder without such a file, or a damaged file.
    """
    paths = {name: path for name in PUBLISHED[protocol] if (path := Path(folder) / f"{name}.json").is_file()}
    if not paths:
        raise DataError(f"{os.fspath(folder)}: must hold published traces such as DRE.json or GP.json, but holds none")
    return {name: read_results(path) for name, path in paths.items()}


def published_files(folder: str | os.PathLike[str], user_results: Mapping[str, Results]) -> dict[str, ResultFile]:
    """Returns the runs of a user's results by published methods that have all of them, by the method's name.

    ``folder`` holds files of `PUBLISHED`. Results of a continuous search are compared with methods of that protocol.

    Raises `DataError` as `read_published`, or if no method has all runs. Warns of the methods that lack runs, and
    leaves them out.
    """
    is_continuous = any("continuous" in str(results.meta.get("protocol")) for results in user_results.values())
    all_results = read_published(folder, "continuous" if is_continuous else "discrete")
    runs = {run[:3] for results in user_results.values() for run in results.runs()}
    lacking = {name: len(runs - {run[:3] for run in results.runs()}) for name, results in all_results.items()}
    complete = [name for name, count in lacking.items() if not count and name not in user_results]
    if left_out := [f"{name} lacks {count}" for name, count in lacking.items() if count]:
        text = f"published methods without all {pluralize(len(runs), 'run')} are left out: {', '.join(left_out)}"
        if not complete:
            raise DataError(text)
        warnings.warn(text, DataWarning, stacklevel=3)
    return {name: ResultFile(Path(folder) / f"{name}.json", _of_runs(all_results[name], runs)) for name in complete}


def _of_runs(results: Results, runs: Collection[tuple[str, str, str]]) -> Results:
    traces: dict[str, dict[str, dict[str, Trace]]] = {}
    for space, dataset, seed, trace in results.runs():
        if (space, dataset, seed) in runs:
            traces.setdefault(space, {}).setdefault(dataset, {})[seed] = trace
    return replace(results, traces=traces)
