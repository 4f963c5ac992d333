"""Unpacks a zip archive that nobody vouches for.

All names and sizes are judged before the first byte is written, and every file's checksum while it is.
"""

from __future__ import annotations

import lzma
import os
import posixpath
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dre_jax.data.remote.fetch import Refused, Watch
from dre_jax.data.remote.part import check_room, disk, megabytes, write_whole

__all__ = ["Limits", "unpack"]

_CHUNK = 1 << 20
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


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an archive may claim to hold. HPO-B's unpack to a few GB, some twenty times their size."""

    max_bytes: int = 32 * 10**9
    max_members: int = 100_000
    max_ratio: float = 200.0  # of unpacked to packed size, beyond `free_bytes`
    free_bytes: int = 100 * 10**6


def unpack(archive: Path, folder: Path, key: Iterable[str], *, limits: Limits | None = None, watch: Watch) -> None:
    """Unpacks into `folder`, which must not exist, the archive's folder that holds a file of one of the `key` names.

    What lies beside that folder is left out, such as the `__MACOSX` that some packers add.

    Raises:
      Refused: for what is no zip archive or a damaged one; for names that are absolute, hold `..`, or are there twice;
        for links, encrypted and special files; beyond the limits; and when no or several folders hold the key.
      DataError: when the disk is full or not writable, or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = _judged(archive, opened, limits or Limits())
            top = _top(archive, members, set(key))
            chosen = {path.relative_to(top): info for path, info in members.items() if path.is_relative_to(top)}
            _write_all(opened, folder, chosen, watch)
    except _DAMAGE as error:
        raise Refused(f"{archive} must be a whole zip archive, but is not: {error or type(error).__name__}") from error


def _judged(archive: Path, opened: zipfile.ZipFile, limits: Limits) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """The files by path, if all is well with the archive's names and sizes."""
    infos = opened.infolist()
    if len(infos) > limits.max_members:
        raise Refused(f"{archive} must hold at most {limits.max_members} files, but has {len(infos)}")
    total, packed = sum(info.file_size for info in infos), archive.stat().st_size
    allowed = min(limits.max_bytes, max(limits.free_bytes, limits.max_ratio * packed))
    if total > allowed:
        raise Refused(
            f"{archive} of {megabytes(packed)} must unpack to at most {megabytes(int(allowed))}, "
            f"but claims {megabytes(total)}"
        )
    for info in infos:
        if fault := _fault(info):
            raise Refused(f"{archive} must hold plain files under its own folder, but {info.orig_filename!r} {fault}")
    members = {PurePosixPath(info.filename): info for info in infos if not info.is_dir()}
    _check_unique(archive, [info.filename for info in infos if not info.is_dir()])
    return members


def _fault(info: zipfile.ZipInfo) -> str:
    name = info.orig_filename  # zipfile has cut `filename` at a NUL
    if "\0" in name or "\\" in name or re.match(r"[A-Za-z]:", name):
        return "is no portable name"
    if name.startswith("/"):
        return "is an absolute path"
    parts = name.removesuffix("/").split("/")
    if ".." in parts:
        return "leads out of it"
    if "" in parts or "." in parts:
        return "is no plain path"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a special file"
    return "is encrypted" if info.flag_bits & 1 else ""


def _check_unique(archive: Path, names: list[str]) -> None:
    # Some file systems take names for equal that differ in case or in the way that accents are written.
    seen: dict[str, str] = {}
    for name in names:
        plain = unicodedata.normalize("NFC", name).casefold()
        if plain in seen:
            raise Refused(f"{archive} must hold every name once, but has {seen[plain]!r} and {name!r}")
        seen[plain] = name
    for name in seen:
        if clash := next((parent for parent in _parents(name) if parent in seen), None):
            raise Refused(f"{archive} must hold every name once, but {seen[clash]!r} is a file and a folder")


def _parents(name: str) -> Iterable[str]:
    while name := posixpath.dirname(name):
        yield name


def _top(archive: Path, members: Iterable[PurePosixPath], key: set[str]) -> PurePosixPath:
    folders = sorted({path.parent for path in members if path.name in key and path.parts[0] != "__MACOSX"})
    if len(folders) != 1:
        found = f"{len(folders)}: {', '.join(map(str, folders[:5]))}" if folders else "none"
        raise Refused(f"{archive} must have one folder that holds {' or '.join(sorted(key))}, but has {found}")
    return folders[0]


def _write_all(
    opened: zipfile.ZipFile, folder: Path, chosen: dict[PurePosixPath, zipfile.ZipInfo], watch: Watch
) -> None:
    total = sum(info.file_size for info in chosen.values())
    check_room(folder.parent, total, f"what is in {opened.filename}")
    with disk(folder):
        folder.mkdir()
    done = 0
    for path, info in chosen.items():
        done = _write_one(opened, folder.joinpath(path), info, done, total, watch)


def _write_one(opened: zipfile.ZipFile, path: Path, info: zipfile.ZipInfo, done: int, total: int, watch: Watch) -> int:
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
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
