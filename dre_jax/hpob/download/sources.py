"""Where HPO-B's data are, and which files belong together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from dre_jax.data.hpob import DESIGNS
from dre_jax.errors import ConfigError
from dre_jax.hpob.download import contents

__all__ = ["COLLECTIONS", "Collection", "is_archive", "is_url", "parse_source"]


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
    check: Callable[[Path, contents.ProgressCallback], str]
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
        required=(DESIGNS, contents.TEST, contents.VALIDATION, contents.TRAIN),
        optional=lambda folder: ("meta-test-tasks-per-space", "meta-dataset-descriptors", contents.AUGMENTED),
        check=contents.check_tables,
    ),
    "hpo-b-surrogates": Collection(
        folder="saved-surrogates",
        sources={
            f"{_AUTHORS}/saved-surrogates.zip": "bda3a71e8b720efa97ea654a5e883f87aed1345fa35553318980e1d45b7b5662",
            f"{_FREIBURG}/rTwPgaxS2Z7NH39/download/saved-surrogates.zip": None,
        },
        required=("summary-stats",),
        optional=contents.surrogate_names,
        check=contents.check_surrogates,
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
