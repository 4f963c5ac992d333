"""Downloads HPO-B's data with pooch (extra `download`), checks them, and only then puts them in place.

All work is done in a folder beside the target, `<target>.part`. Complete files stay there until the whole is in place,
so that a rerun does not download them again. Wrong content is removed.
"""

import hashlib
import os
import shutil
import time
import warnings
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from dre_jax.checks import one_of
from dre_jax.data.files import find_json, make_folder
from dre_jax.errors import DataError, DataWarning, import_extra
from dre_jax.hpob.download.archive import unpack
from dre_jax.hpob.download.sources import COLLECTIONS, Collection, ProgressCallback, check_source, is_archive, is_url
from dre_jax.runtime.locks import LOCK, folder_lock

_PAUSES = (1.0, 4.0)  # seconds between attempts
_TIMEOUT = 30.0
_CHUNK = 1 << 16
_PATIENCE = 6 * 3600.0  # seconds, for a download by another process


def download(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    progress: ProgressCallback = lambda label, n_done, total: None,
) -> str:
    """Downloads a collection (`hpo-b` or `hpo-b-surrogates`) into the folder `out`, and returns a one-line summary.

    `url` is the address or the path of a zip archive or of a folder of loose files, by default the authors' archive.
    The folder appears in one step, after its content was read and found to be HPO-B's. Nothing is done if it exists
    already.

    Raises:
      ConfigError: for an unknown collection, and a `url` that is none of these.
      DataError: if `out` holds anything else, nothing can be downloaded, the content is wrong or the disk is full.
      MissingExtraError: without pooch, for a URL.
    """
    one_of("what to download", name, COLLECTIONS)
    collection = COLLECTIONS[name]
    if url is not None:
        check_source(url)
        collection = collection._replace(url=url, sha256=None)
    folder = Path(collection.folder if out is None else out)
    target = Path(os.path.realpath(folder))
    work = target.with_name(f"{target.name}.part")
    if (summary := _existing(target, name)) is None:
        make_folder(work)
        with folder_lock(work, _PATIENCE):
            try:
                if (summary := _existing(target, name)) is None:  # another process may have been at it
                    return f"{folder}: {_fill(target, work, collection, progress)}"
            except OSError as error:
                raise DataError(f"{work} cannot be written: {error.strerror or error}") from error
            finally:
                shutil.rmtree(work / "content", ignore_errors=True)
                if not any(path.is_file() and path.name != LOCK for path in work.rglob("*")):
                    shutil.rmtree(work, ignore_errors=True)
    return f"{folder} is there already: {summary}"


def _existing(target: Path, name: str) -> str | None:
    """Returns the summary of a finished folder, None for none or an empty one. Raises `DataError` for anything else."""
    try:
        if not os.path.lexists(target) or not any(target.iterdir()):
            return None
        return COLLECTIONS[name].check(target)
    except (DataError, OSError) as error:
        raise DataError(f"the folder must be new, empty, or hold {name} already, but: {error}") from error


def _fill(target: Path, work: Path, collection: Collection, progress: ProgressCallback) -> str:
    """Puts the files of a source in place, and returns a summary."""
    work.mkdir(exist_ok=True)
    for partial in work.rglob("tmp*"):  # so pooch names the file at hand; a process was killed
        partial.unlink()
    source = collection.url
    content = (_unpack_archive if is_archive(source) else _copy_files)(collection, work, progress)
    try:
        summary = collection.check(content)
    except DataError as error:
        shutil.rmtree(work, ignore_errors=True)  # a second attempt would fail too
        raise DataError(str(error).replace(str(content), source)) from error
    for path in content.iterdir():  # otherwise a power cut may keep the rename and lose the content
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    os.rename(content, target)  # also over an empty folder
    shutil.rmtree(work, ignore_errors=True)
    return f"{summary}, from {source}"


def _unpack_archive(collection: Collection, work: Path, progress: ProgressCallback) -> Path:
    """Returns a folder with the files of an archive."""
    source, content = collection.url, work / "content"
    shutil.rmtree(content, ignore_errors=True)
    archive = _retrieve(source, collection.sha256, work, None, progress) if is_url(source) else Path(source)
    try:
        unpack(archive, content, collection.required[0], progress)
    except DataError as error:
        if is_url(source):
            archive.unlink()  # else the next call would use it again
        raise DataError(str(error).replace(str(archive), source)) from error
    return content


def _copy_files(collection: Collection, work: Path, progress: ProgressCallback) -> Path:
    """Returns a folder with the loose files of a source; those of a server stay for the next call."""
    source = collection.url
    content = work / (hashlib.sha256(source.encode()).hexdigest()[:16] if is_url(source) else "content")
    content.mkdir(exist_ok=True)
    for stem in collection.required:
        _add_file(source, stem, content, progress)
    for stem in collection.optional(content):
        try:
            _add_file(source, stem, content, progress)
        except DataError as error:
            if is_url(source):
                warnings.warn(f"{error}; going on without it", DataWarning, stacklevel=4)
    return content


def _add_file(source: str, stem: str, content: Path, progress: ProgressCallback) -> None:
    if not is_url(source):
        path = find_json(source, stem)
        shutil.copyfile(path, content / path.name)
        return
    url = f"{source.rstrip('/')}/{stem}.json"
    path = _retrieve(url, None, content, f"{stem}.json", progress)
    with path.open("rb") as stream:
        start = stream.read(60).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{"):
        path.unlink()
        raise DataError(f"{url} must be a JSON object, but starts with {start!r}")


class _PoochBar:
    """The methods of a progress bar that pooch calls."""

    def __init__(self, label: str, progress: ProgressCallback) -> None:
        self.total = self._n_done = 0
        self._label, self._progress = label, progress

    def update(self, n_bytes: int) -> None:
        self._n_done += n_bytes
        self._progress(self._label, min(self._n_done, self.total or self._n_done), self.total)

    def reset(self) -> None:
        self._n_done = 0

    def close(self) -> None:
        pass


def _retrieve(url: str, sha256: str | None, folder: Path, name: str | None, progress: ProgressCallback) -> Path:
    """Downloads a file into a folder, if it is not there from an earlier call, and returns its path.

    Raises `DataError`, and `MissingExtraError` without pooch.
    """
    pooch, requests = (import_extra(module, "pooch", "download") for module in ("pooch", "requests"))
    pooch.get_logger().setLevel("WARNING")  # else it prints every file with its hash
    label, pauses = PurePosixPath(urlsplit(url).path).name, list(_PAUSES)
    headers = {"User-Agent": "dre_jax", "Accept-Encoding": "identity"}
    while True:
        bar = _PoochBar(label, progress)
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, timeout=_TIMEOUT, headers=headers)
        try:
            return Path(pooch.retrieve(url, sha256, fname=name, path=folder, downloader=downloader))
        except requests.RequestException as error:
            is_client_error = error.response is not None and error.response.status_code < 500
            if is_client_error or not pauses or isinstance(error, ValueError):  # a ValueError is an invalid URL
                raise DataError(f"{url} cannot be downloaded: {_reason(error)}") from error
            time.sleep(pauses.pop(0))
        except ValueError as error:  # of the hash
            raise DataError(f"{url}: {error} If it is a newer version, name it with --url.") from error


def _reason(error: BaseException) -> str:
    """Returns the first cause; requests' own message is a paragraph."""
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
