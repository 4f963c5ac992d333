"""Unpacks an untrusted zip archive: the data files of one of its folders, under their bare names."""

import errno
import re
import zipfile
from pathlib import Path

from dre_jax.errors import DataError
from dre_jax.hpob.download.sources import ProgressCallback

_DATA = re.compile(r"[\w.-]+\.json(\.gz)?", re.ASCII)
# HPO-B's archives unpack to a few GB, some twenty times their size.
_MAX_BYTES, _FREE_BYTES, _MAX_RATIO = 32 * 10**9, 100 * 10**6, 200


def unpack(archive: Path, folder: Path, key: str, progress: ProgressCallback) -> None:
    """Unpacks the JSON files beside `key` into `folder`, under their bare names, so that no name can lead elsewhere.

    Raises:
      DataError: for a damaged archive, if no or several of its folders hold the key, and for more than a hundred
        megabytes from a much smaller archive. Sizes are checked before the first byte is written.
      OSError: if the disk is full or not writable.
    """
    try:
        with zipfile.ZipFile(archive) as zip_file:
            members = _members(zip_file.infolist(), key)
            n_bytes, total = 0, sum(info.file_size for info in members)
            archive_size = archive.stat().st_size
            if total > (max_size := min(_MAX_BYTES, max(_FREE_BYTES, _MAX_RATIO * archive_size))):
                raise ValueError(f"{archive_size:,} bytes must unpack to at most {max_size:,}, but claim {total:,}")
            for info in members:
                # No more bytes are written than the directory claims, and the checksum is compared at their end.
                zip_file.extract(info, folder)
                n_bytes += info.file_size
                progress("unpack", n_bytes, total)
    except Exception as error:  # a damaged archive raises errors of six modules
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which an offset outside the file causes
            raise
        raise DataError(f"{archive} must be a whole zip archive of the data, but: {error}") from error


def _members(infos: list[zipfile.ZipInfo], key: str) -> list[zipfile.ZipInfo]:
    """Returns the files to unpack, renamed to their bare names; files that packers add in `__MACOSX` do not count."""
    folders: dict[str, list[zipfile.ZipInfo]] = {}
    for info in infos:
        folder, _, info.filename = info.filename.rpartition("/")
        if not folder.startswith("__MACOSX"):
            folders.setdefault(folder, []).append(info)
    keys = {f"{key}.json", f"{key}.json.gz"}
    holders = [folder for folder, members in sorted(folders.items()) if keys & {info.filename for info in members}]
    if len(holders) != 1:
        names = ", ".join(folder or "." for folder in holders[:5]) or "none"
        raise ValueError(f"one folder must hold {key}.json or {key}.json.gz, but these do: {names}")
    return [info for info in folders[holders[0]] if _DATA.fullmatch(info.filename)]
