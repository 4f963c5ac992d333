"""Where HPO-B's data are to be had, and what belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from dre_jax.checks import one_of
from dre_jax.data.spaces import SPLITS
from dre_jax.errors import ConfigError
from dre_jax.hpob.download.contents import (
    AUGMENTED,
    DESIGNS,
    STATISTICS,
    Expected,
    check_surrogates,
    check_tables,
    surrogate_names,
)
from dre_jax.hpob.download.fetch import Watch

__all__ = ["COLLECTIONS", "Collection", "Source", "collection", "parse_source", "url_of"]


class Source(NamedTuple):
    """A zip archive or a folder of loose files; a URL or a path."""

    place: str
    is_archive: bool
    is_local: bool = False
    sha256: str = ""  # of the archive, where it is known


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A set of files that belong together."""

    name: str
    folder: str  # where it goes if nothing else is said
    sources: tuple[Source, ...]
    required: tuple[str, ...]  # the stems of loose files, the smallest first, so that a wrong address shows at once
    optional: tuple[str, ...] = ()
    check: Callable[[Path, Expected, Watch], str]
    more: Callable[[Path], list[str]] = lambda folder: []  # stems that only the required files tell

    @property
    def key(self) -> tuple[str, ...]:
        """File names, one of which marks the folder inside an archive."""
        return tuple(f"{self.required[0]}{suffix}" for suffix in (".json", ".json.gz"))


# HPO-B's README named archives on rewind.tf.uni-freiburg.de until those went away in June 2025 (the repository's issue
# 7). Since then they are the author's GitHub repository, where the hashes are from, and a data set on Hugging Face.
_AUTHORS = "https://github.com/sebastianpinedaar/hpo-data/raw/refs/heads/main"
_HUGGING_FACE = "https://huggingface.co/datasets/Sebastianpinar"
_FREIBURG = "https://rewind.tf.uni-freiburg.de/index.php/s"

_TABLES = Collection(
    name="hpo-b",
    folder="hpob-data",
    sources=(
        Source(
            f"{_AUTHORS}/hpob-data.zip",
            True,
            sha256="ab1c439e50ffea3d8a3f1e0ad7ee7f03cd3c12df05576de84ad7c3b58fbf3358",
        ),
        Source(f"{_HUGGING_FACE}/hpob-data/resolve/main", False),
        Source(f"{_HUGGING_FACE}/hpob/resolve/main", False),
        Source(f"{_FREIBURG}/xdrJQPCTNi2zbfL/download/hpob-data.zip", True),
    ),
    required=(DESIGNS, *(f"meta-{split}-dataset" for split in reversed(SPLITS))),
    optional=("meta-test-tasks-per-space", "meta-dataset-descriptors", AUGMENTED),
    check=check_tables,
)
_SURROGATES = Collection(
    name="hpo-b-surrogates",
    folder="saved-surrogates",
    sources=(
        Source(
            f"{_AUTHORS}/saved-surrogates.zip",
            True,
            sha256="bda3a71e8b720efa97ea654a5e883f87aed1345fa35553318980e1d45b7b5662",
        ),
        Source(f"{_FREIBURG}/rTwPgaxS2Z7NH39/download/saved-surrogates.zip", True),
    ),
    required=(STATISTICS,),
    check=check_surrogates,
    more=surrogate_names,
)
COLLECTIONS = {each.name: each for each in (_TABLES, _SURROGATES)}


def collection(name: str) -> Collection:
    """A collection by its name. Raises `ConfigError` for an unknown one."""
    one_of("what to download", name, COLLECTIONS)
    return COLLECTIONS[name]


def parse_source(text: str) -> Source:
    """The source that an address or a path stands for: an archive if it ends in `.zip`, else a folder of loose files.

    The page of a Hugging Face data set stands for its files. Raises `ConfigError` for other than http(s) addresses
    and existing paths.

    >>> parse_source("https://example.org/hpob-data.zip?download=").is_archive
    True
    >>> parse_source("https://huggingface.co/datasets/someone/hpob-data").place
    'https://huggingface.co/datasets/someone/hpob-data/resolve/main'
    """
    address = urlsplit(text)
    if address.scheme.lower() in ("http", "https"):
        if not address.hostname:
            raise ConfigError(f"a URL must name a host, but got {text!r}")
        archive = address.path.lower().endswith(".zip")
        path = address.path
        if address.hostname == "huggingface.co" and not archive:
            path = _files_of_data_set(path)
        return Source(urlunsplit(address._replace(path=path)), archive)
    local = Path(text).expanduser()
    if not text or "://" in text or not local.exists():
        raise ConfigError(f"--url must be an http(s) URL, or a zip archive or a folder that exists, but got {text!r}")
    return Source(str(local), local.is_file(), is_local=True)


def _files_of_data_set(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts[:1] != ["datasets"] or len(parts) < 3:
        return path
    kind, *rest = parts[3:] or ["tree", "main"]
    return "/" + "/".join([*parts[:3], "resolve" if kind in ("tree", "blob") else kind, *rest])


def url_of(folder: str, name: str) -> str:
    """The address of a file in a folder, with the folder's query behind it.

    >>> url_of("https://example.org/data/?download=true", "a.json")
    'https://example.org/data/a.json?download=true'
    """
    address = urlsplit(folder)
    return urlunsplit(address._replace(path=f"{address.path.rstrip('/')}/{name}"))
