"""Where HPO-B's data are, which files belong together, and what they must hold, read once in bounded memory."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from dre_jax.data import checks
from dre_jax.data.files import find_json, has_json, place, read_json
from dre_jax.data.hpob import DESIGNS
from dre_jax.data.json_stream import iter_everything
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.hpob.continuous import read_ranges

__all__ = [
    "COLLECTIONS",
    "Collection",
    "ProgressCallback",
    "check_surrogates",
    "check_tables",
    "is_archive",
    "is_url",
    "parse_source",
    "surrogate_names",
]

ProgressCallback = Callable[[str, int, int], None]
"""Gets the label of a step, its bytes so far, and its bytes in all (0 where they are unknown)."""

TEST, VALIDATION, TRAIN = (f"meta-{split}-dataset" for split in ("test", "validation", "train"))
AUGMENTED = f"{TRAIN}-augmented"
# Of HPO-B v3: designs of a test task, rows of a design.
N_SPACES, N_TEST_TASKS, N_DESIGNS, N_DESIGN_ROWS = 16, 86, 5, 5
# A surrogate's name becomes a file's name, so nothing else may be in it.
_SURROGATE = re.compile(r"surrogate-(\w[\w.]*)-(\w[\w.]*)")


def check_tables(folder: Path, progress: ProgressCallback) -> str:
    """Reads all of HPO-B v3's files, and the larger training file if there is one, and returns a summary.

    Raises:
      DataError: for a file that is missing or malformed, tables with other than finite numbers, search spaces or
        columns that differ between the files, and other numbers of search spaces, test tasks and designs than HPO-B's.
    """
    path = find_json(folder, DESIGNS)
    designs = {(space, dataset): seeds for space, dataset, seeds, _ in iter_everything(path)}
    n_columns: dict[str, int] = {}
    spaces: dict[str, set[str]] = {}
    n_tasks: Counter[str] = Counter()
    n_rows: Counter[str] = Counter()
    for stem in (TEST, VALIDATION, TRAIN, *([AUGMENTED] if has_json(folder, AUGMENTED) else [])):
        path, spaces[stem] = find_json(folder, stem), set()
        size = path.stat().st_size
        for space, dataset, value, end in iter_everything(path):
            where = place(path, space, dataset)
            n, columns = checks.table(value, where)[0].shape
            if columns != n_columns.setdefault(space, columns):
                rule = f"X must have {n_columns[space]} columns like the space's other tasks"
                raise DataError(f"{where}: {rule}, but has {columns}")
            if stem == TEST:
                _check_designs(designs.get((space, dataset), {}), n, f"{DESIGNS}: space {space!r}, dataset {dataset!r}")
            spaces[stem].add(space)
            n_tasks[stem] += 1
            n_rows[stem] += n
            progress(f"check {path.name}", min(end, size), size)
        if (len(spaces[TEST]), n_tasks[TEST]) != (N_SPACES, N_TEST_TASKS):
            rule = f"HPO-B must hold {N_SPACES} search spaces and {N_TEST_TASKS} test tasks"
            raise DataError(f"{folder}: {rule}, but there are {len(spaces[TEST])} and {n_tasks[TEST]}")
        if stem != AUGMENTED and (differing := sorted(spaces[stem] ^ spaces[TEST])):
            raise DataError(f"{path}: must hold the search spaces of {TEST}, but they differ in {differing[:5]}")
    tasks = " / ".join(f"{n_tasks[stem]}" for stem in (TRAIN, VALIDATION, TEST))
    rows = n_rows.total() - n_rows[AUGMENTED]
    return (
        f"{N_SPACES} search spaces, {tasks} tasks for training / validation / test, {rows:,} evaluations, "
        f"{N_DESIGNS} initial designs"
    )


def _check_designs(seeds: dict[str, Any], n_rows: int, where: str) -> None:
    if len(seeds) != N_DESIGNS:
        raise DataError(f"{where}: a test task must have {N_DESIGNS} initial designs, but has {len(seeds)}")
    for seed, rows in seeds.items():
        n = len(checks.design_rows(rows, n_rows, f"{where}, seed {seed!r}"))
        if n < N_DESIGN_ROWS:
            raise DataError(f"{where}, seed {seed!r}: a design must have {N_DESIGN_ROWS} rows, but has {n}")


def surrogate_names(folder: Path) -> list[str]:
    """Returns the stems of the surrogates' files that `summary-stats.json` names.

    Raises `DataError` if it is missing or malformed, or if a name is not `surrogate-<space>-<dataset>`.
    """
    for name, values in (ranges := read_ranges(folder)).items():
        if not _SURROGATE.fullmatch(name):
            raise DataError(f"{folder}: a name must be surrogate-<space>-<dataset>, but got {checks.show(name)}")
        ends: list[Any] = [values.get(end) for end in ("y_min", "y_max")] if isinstance(values, dict) else [None]
        if not all(checks.is_number(end) and math.isfinite(end) for end in ends) or ends != sorted(ends):
            raise DataError(f"{folder}: {name} must have finite y_min <= y_max, but got {checks.show(values)}")
    return list(ranges)


def check_surrogates(folder: Path, progress: ProgressCallback) -> str:
    """Reads the statistics and every surrogate that they name, one at a time, and returns a summary.

    A surrogate without a file is warned of (`DataWarning`), as most belong to tasks that are not tested on.

    Raises:
      DataError: for statistics or a model that cannot be read, and for fewer surrogates or search spaces than HPO-B's.
    """
    paths = {name: folder / f"{name}.json" for name in surrogate_names(folder)}
    missing = [name for name, path in paths.items() if not path.is_file()]
    sizes = {name: path.stat().st_size for name, path in paths.items() if name not in missing}
    for number, name in enumerate(sizes, 1):
        model = read_json(path := paths[name])
        if not isinstance(model, dict) or "learner" not in model:
            raise DataError(f"{path}: must be an XGBoost model, an object with 'learner', but got {checks.show(model)}")
        progress("check surrogates", sum([*sizes.values()][:number]), sum(sizes.values()))
    n_spaces = len({match[1] for name in sizes if (match := _SURROGATE.fullmatch(name))})
    if n_spaces < N_SPACES or len(sizes) < N_TEST_TASKS:
        rule = f"surrogates of at least {N_TEST_TASKS} tasks in {N_SPACES} search spaces"
        raise DataError(f"{folder}: HPO-B must have {rule}, but there are {len(sizes)} in {n_spaces}")
    if missing:
        text = f"{folder}: {len(missing)} surrogates have statistics but no file, {missing[0]} the first"
        warnings.warn(text, DataWarning, stacklevel=2)
    return f"surrogates of {len(sizes)} tasks in {n_spaces} search spaces"


class Collection(NamedTuple):
    """Files that belong together, named by their stems."""

    folder: str
    """Default target."""
    sources: Mapping[str, str | None]
    """Addresses in the order in which they are tried, with the SHA-256 of an archive where it is known."""
    required: tuple[str, ...]
    """The smallest first, so that a wrong address shows at once; it also marks the folder inside an archive."""
    optional: Callable[[Path], Sequence[str]]
    """Returns further files, by a folder that holds the required ones."""
    check: Callable[[Path, ProgressCallback], str]
    """Returns a summary of a folder. Raises `DataError` for wrong content."""


# HPO-B's README named archives on rewind.tf.uni-freiburg.de until those went away in June 2025 (the repository's issue
# 7). Since then they are the author's GitHub repository, where the hashes are from, and a data set on Hugging Face.
_AUTHORS = "https://github.com/sebastianpinedaar/hpo-data/raw/refs/heads/main"
_HUGGING_FACE = "https://huggingface.co/datasets/Sebastianpinar"
_FREIBURG = "https://rewind.tf.uni-freiburg.de/index.php/s"
COLLECTIONS = {
    "hpo-b": Collection(
        folder="hpob-data",
        sources={
            f"{_AUTHORS}/hpob-data.zip": "ab1c439e50ffea3d8a3f1e0ad7ee7f03cd3c12df05576de84ad7c3b58fbf3358",
            f"{_HUGGING_FACE}/hpob-data/resolve/main": None,
            f"{_HUGGING_FACE}/hpob/resolve/main": None,
            f"{_FREIBURG}/xdrJQPCTNi2zbfL/download/hpob-data.zip": None,
        },
        required=(DESIGNS, TEST, VALIDATION, TRAIN),
        optional=lambda folder: ("meta-test-tasks-per-space", "meta-dataset-descriptors", AUGMENTED),
        check=check_tables,
    ),
    "hpo-b-surrogates": Collection(
        folder="saved-surrogates",
        sources={
            f"{_AUTHORS}/saved-surrogates.zip": "bda3a71e8b720efa97ea654a5e883f87aed1345fa35553318980e1d45b7b5662",
            f"{_FREIBURG}/rTwPgaxS2Z7NH39/download/saved-surrogates.zip": None,
        },
        required=("summary-stats",),
        optional=surrogate_names,
        check=check_surrogates,
    ),
}


def is_url(source: str) -> bool:
    """Returns whether a source is an address; the others are paths."""
    return source.lower().startswith(("http://", "https://"))


def is_archive(source: str) -> bool:
    """Returns whether a source is a zip archive; the others are folders of loose files.

    >>> is_archive("https://example.org/hpob-data.zip?download=")
    True
    """
    return urlsplit(source).path.lower().endswith(".zip") if is_url(source) else Path(source).is_file()


def parse_source(text: str) -> str:
    """Returns the source that a user names; the page of a Hugging Face data set becomes the folder of its files.

    Raises `ConfigError` for other than http(s) addresses and existing paths.

    >>> parse_source("https://huggingface.co/datasets/someone/hpob-data")
    'https://huggingface.co/datasets/someone/hpob-data/resolve/main'
    """
    if is_url(text):
        address = urlsplit(text)
        if not address.hostname or "@" in address.netloc:
            raise ConfigError(f"a URL must name a host, without user and password, but got {text!r}")
        if address.hostname != "huggingface.co" or is_archive(text):
            return text
        path = re.sub(r"^(/datasets/[^/]+/[^/]+)/?$", r"\1/tree/main", address.path)
        path = re.sub(r"^(/datasets/[^/]+/[^/]+)/(tree|blob)/", r"\1/resolve/", path)
        return urlunsplit(address._replace(path=path))
    if not text or "://" in text or not Path(text).expanduser().exists():
        raise ConfigError(f"--url must be an http(s) URL, or a zip archive or a folder that exists, but got {text!r}")
    return str(Path(text).expanduser())
