"""The sources of HPO-B's data, and their required content."""

import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from dre_jax.data import checks
from dre_jax.data.files import location
from dre_jax.data.hpob import DESIGNS, outline
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.hpob.continuous import read_ranges

ProgressCallback = Callable[[str, int, int], None]
"""Gets the label of a step, its bytes so far, and its bytes in all (0 where they are unknown)."""

TEST, VALIDATION, TRAIN = (f"meta-{split}-dataset" for split in ("test", "validation", "train"))
# Of HPO-B v3: designs of a test task.
N_SPACES, N_TEST_TASKS, N_DESIGNS = 16, 86, 5
# A surrogate's name becomes a file's name, so nothing else may be in it.
_SURROGATE = re.compile(r"surrogate-(\w[\w.]*)-(\w[\w.]*)")


def check_tables(folder: Path) -> str:
    """Returns a summary of HPO-B v3's files, which are read to their ends; tables are checked when they are loaded.

    Raises `DataError` for a file that is missing, cut off or no JSON, search spaces or columns that differ between the
    files, and other numbers of search spaces, test tasks and initial designs than HPO-B's.
    """
    splits = {split: outline(folder, split) for split in ("train", "validation", "test")}
    tests = splits["test"]
    n_tasks = {split: sum(len(space.datasets) for space in spaces.values()) for split, spaces in splits.items()}
    if (len(tests), n_tasks["test"]) != (N_SPACES, N_TEST_TASKS):
        rule = f"HPO-B must hold {N_SPACES} search spaces and {N_TEST_TASKS} test tasks"
        raise DataError(f"{folder}: {rule}, but there are {len(tests)} and {n_tasks['test']}")
    for split, spaces in splits.items():
        if {n: space.n_columns for n, space in spaces.items()} != {
            n: listing.n_columns for n, listing in tests.items()
        }:
            raise DataError(f"{folder}: the {split} split must have the search spaces and columns of the test split")
    for space in tests.values():
        for dataset, seeds in space.seeds.items():
            if len(seeds) != N_DESIGNS:
                where = location(folder, space.name, dataset)
                raise DataError(f"{where}: a test task must have {N_DESIGNS} initial designs, but has {len(seeds)}")
    tasks = " / ".join(str(count) for count in n_tasks.values())
    return f"{N_SPACES} search spaces, {tasks} tasks for training / validation / test, {N_DESIGNS} initial designs"


def surrogate_names(folder: Path) -> list[str]:
    """Returns the stems of the surrogates' files that `summary-stats.json` names.

    Raises `DataError` if it is missing or malformed, or if a name is not `surrogate-<space>-<dataset>`.
    """
    for name in (ranges := read_ranges(folder)):
        if not _SURROGATE.fullmatch(name):
            raise DataError(f"{folder}: a name must be surrogate-<space>-<dataset>, but got {checks.show(name)}")
    return list(ranges)


def check_surrogates(folder: Path) -> str:
    """Returns a summary of the surrogates that the statistics name; each is checked when it is loaded.

    Warns of surrogates without a file (`DataWarning`), as most belong to tasks outside of the test split. Raises
    `DataError` for statistics that cannot be read, and for fewer surrogates or search spaces than HPO-B's.
    """
    names = surrogate_names(folder)
    present = [name for name in names if (folder / f"{name}.json").is_file()]
    n_spaces = len({match[1] for name in present if (match := _SURROGATE.fullmatch(name))})
    if n_spaces < N_SPACES or len(present) < N_TEST_TASKS:
        rule = f"surrogates of at least {N_TEST_TASKS} tasks in {N_SPACES} search spaces"
        raise DataError(f"{folder}: HPO-B must have {rule}, but there are {len(present)} in {n_spaces}")
    if missing := [name for name in names if name not in present]:
        text = f"{folder}: {len(missing)} surrogates have statistics but no file, {missing[0]} the first"
        warnings.warn(text, DataWarning, stacklevel=2)
    return f"surrogates of {len(present)} tasks in {n_spaces} search spaces"


class Collection(NamedTuple):
    """Files that belong together, in a zip archive or a folder."""

    folder: str
    """Default target."""
    url: str
    sha256: str | None
    """None if it is unknown."""
    required: tuple[str, ...]
    """Stems, the smallest file first, so that a wrong address shows at once; it marks the folder inside an archive."""
    optional: Callable[[Path], Sequence[str]]
    """Returns the stems of further files, by a folder that holds the required ones."""
    check: Callable[[Path], str]
    """Returns a summary of a folder. Raises `DataError` for wrong content."""


_AUTHORS = "https://github.com/sebastianpinedaar/hpo-data/raw/refs/heads/main"
COLLECTIONS = {
    "hpo-b": Collection(
        folder="hpob-data",
        url=f"{_AUTHORS}/hpob-data.zip",
        sha256="ab1c439e50ffea3d8a3f1e0ad7ee7f03cd3c12df05576de84ad7c3b58fbf3358",
        required=(DESIGNS, TEST, VALIDATION, TRAIN),
        optional=lambda folder: ("meta-test-tasks-per-space", "meta-dataset-descriptors", f"{TRAIN}-augmented"),
        check=check_tables,
    ),
    "hpo-b-surrogates": Collection(
        folder="saved-surrogates",
        url=f"{_AUTHORS}/saved-surrogates.zip",
        sha256="bda3a71e8b720efa97ea654a5e883f87aed1345fa35553318980e1d45b7b5662",
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


def check_source(source: str) -> None:
    """Raises `ConfigError` for a source that is neither an http(s) address nor an existing path."""
    if is_url(source):
        address = urlsplit(source)
        if not address.hostname or "@" in address.netloc:
            raise ConfigError(f"a URL must name a host, without user and password, but got {source!r}")
    elif not source or not Path(source).exists():
        raise ConfigError(f"--url must be an http(s) URL, or a zip archive or a folder that exists, but got {source!r}")
