"""Unpacks a zip archive that nobody vouches for.

Only data files of one of its folders are written, under their bare names: no name in it can lead anywhere else. Sizes
are judged before the first byte is written, and every file's checksum while it is.
"""

from __future__ import annotations

import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from dre_jax.hpob.download.fetch import Refused, Watch
from dre_jax.hpob.download.part import check_room, disk, megabytes, write_whole

__all__ = ["unpack"]

_CHUNK = 1 << 20
_DATA = re.compile(r"[\w.-]+\.json(\.gz)?", re.ASCII)
# HPO-B's archives unpack to a few GB, some twenty times their size.
_MOST_BYTES, _FREE_BYTES = 32 * 10**9, 100 * 10**6
_MOST_TIMES = 200  # unpacked to packed size, beyond the free bytes
# Everything that zipfile and what it calls raise for bytes that are no archive, or a damaged one.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)


def unpack(archive: Path, folder: Path, key: Iterable[str], *, watch: Watch) -> None:
    """Unpacks into `folder`, which must not exist, the JSON files that lie beside the one of the `key` names.

    Raises:
      Refused: for what is no zip archive, a damaged or an encrypted one; when no or several folders hold the key, or
        that folder a name twice; and for more than a hundred megabytes that come out of next to nothing.
      DataError: when the disk is full or not writable, or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            chosen = _chosen(archive, opened.infolist(), set(key))
            total = _total(archive, chosen)
            check_room(folder.parent, total, f"what is in {archive}")
            with disk(folder):
                folder.mkdir()
            done = 0
            for name, info in chosen.items():
                done = _write_one(opened, folder / name, info, done, total, watch)
    except _DAMAGE as error:
        raise Refused(f"{archive} must be a whole zip archive, but is not: {error or type(error).__name__}") from error


def _chosen(archive: Path, infos: list[zipfile.ZipInfo], key: set[str]) -> dict[str, zipfile.ZipInfo]:
    """The data files by name. What packers add in `__MACOSX` does not count."""
    places = [(*info.filename.rpartition("/")[::2], info) for info in infos]
    folders = sorted({folder for folder, name, _ in places if name in key and not folder.startswith("__MACOSX")})
    if len(folders) != 1:
        found = f"{len(folders)}: {', '.join(folder or '.' for folder in folders[:5])}" if folders else "none"
        raise Refused(f"{archive} must have one folder that holds {' or '.join(sorted(key))}, but has {found}")
    data = [(name, info) for folder, name, info in places if folder == folders[0] and _DATA.fullmatch(name)]
    # Some file systems take names for equal that differ in case.
    if len({name.lower() for name, _ in data}) < len(data):
        raise Refused(f"{archive} must hold every name once, but has one of {len(data)} files twice")
    return dict(data)


def _total(archive: Path, chosen: dict[str, zipfile.ZipInfo]) -> int:
    """Bytes that are going to be written."""
    total, packed = sum(info.file_size for info in chosen.values()), archive.stat().st_size
    allowed = min(_MOST_BYTES, max(_FREE_BYTES, _MOST_TIMES * packed))
    if total > allowed:
        rule = f"{archive} of {megabytes(packed)} must unpack to at most {megabytes(allowed)}"
        raise Refused(f"{rule}, but claims {megabytes(total)}")
    return total


def _write_one(opened: zipfile.ZipFile, path: Path, info: zipfile.ZipInfo, done: int, total: int, watch: Watch) -> int:
    with disk(path):
        out = path.open("xb", buffering=0)
    with out, opened.open(info) as packed:
        # zipfile hands out no more bytes than the name claims, and compares the checksum at their end.
        while piece := packed.read(_CHUNK):
            write_whole(out, piece, path)
            done += len(piece)
            watch.progress("unpack", done, total)
        with disk(path):
            os.fsync(out.fileno())
    if path.stat().st_size != info.file_size:
        raise Refused(f"{opened.filename} must be a whole zip archive, but {info.filename!r} is cut off")
    return done
