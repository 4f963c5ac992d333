"""Fetches HPO-B's data, checks them, and only then puts them in place.

All work is done in a folder beside the target, `<target>.part`. What was fetched stays there until the whole is in
place, so that an interrupted download goes on; what turned out to be wrong does not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dre_jax.data.files import find_json, make_folder, read_json, write_json
from dre_jax.errors import DataError
from dre_jax.hpob.download.archive import unpack
from dre_jax.hpob.download.contents import HPO_B, Expected
from dre_jax.hpob.download.fetch import JSON, ZIP, Patience, Refused, Silent, Unreachable, Watch, fetch
from dre_jax.hpob.download.part import Part, check_room, disk
from dre_jax.hpob.download.sources import Collection, Source, collection, parse_source, url_of

__all__ = ["MARKER", "download"]

MARKER = "dre-jax-download.json"


def download(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    expected: Expected = HPO_B,
    patience: Patience | None = None,
    watch: Watch | None = None,
) -> str:
    """Fetches a collection (`hpo-b` or `hpo-b-surrogates`) into the folder `out`, and says in one line what is there.

    `url` is the address or the path of a zip archive or of a folder of loose files; without it, the authors' places
    are tried in turn. The same call goes on after an interruption, and does nothing when all is there. The folder
    appears at once, when its content has been read through and found to be what is expected.

    Raises:
      ConfigError: for an unknown collection, and a `url` that is none of these.
      DataError: when `out` holds anything else; when nothing can be fetched, or what was is not as it must be; when the
        disk is full; when another process is at it.
    """
    wanted, watch = collection(name), watch or Silent()
    sources = (parse_source(url),) if url is not None else wanted.sources
    given = Path(wanted.folder if out is None else out)
    target = Path(os.path.realpath(given))
    if there := _already(target, wanted, expected, watch):
        return f"{given} is there already: {there}"
    make_folder(target.parent)
    with _workshop(target) as work:
        source, content = _from_any(sources, work, wanted, patience or Patience(), watch)
        try:
            holds = wanted.check(content, expected, watch)
        except DataError as error:
            shutil.rmtree(work, ignore_errors=True)  # it would be no better the next time
            raise DataError(str(error).replace(str(content), source.place)) from error
        _place(content, target, {"collection": wanted.name, "source": source.place, "holds": holds})
        shutil.rmtree(work, ignore_errors=True)
    return f"{given}: {holds}, from {source.place}"


def _already(target: Path, wanted: Collection, expected: Expected, watch: Watch) -> str | None:
    """The content of a finished folder; None where there is nothing yet. Raises `DataError` for anything else."""
    if not os.path.lexists(target):
        return None
    with disk(target):
        if target.is_dir() and not any(target.iterdir()):
            return None
    rule = f"the folder must be new, empty, or hold {wanted.name} already"
    if not target.is_dir():
        raise DataError(f"{rule}, but {target} is a file")
    try:
        return _marked(target, wanted) or wanted.check(target, expected, watch)
    except DataError as error:
        raise DataError(f"{rule}, but: {error}") from error


def _marked(target: Path, wanted: Collection) -> str | None:
    """The content of an earlier download's note, if it is still true."""
    if not (target / MARKER).exists():
        return None  # somebody else put it there: it has to be read
    note = read_json(target / MARKER)
    files = note.get("files") if isinstance(note, dict) else None
    if not isinstance(files, dict) or note.get("collection") != wanted.name:
        raise DataError(f"{target / MARKER} tells of something else")
    for name, size in files.items():
        path = target / name
        if not path.is_file() or path.stat().st_size != size:
            raise DataError(f"{path} is no longer the file that was downloaded; remove the folder to start anew")
    return f"{note.get('holds')}"


@contextlib.contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """The folder beside the target, for one process at a time; it goes when nothing is in it."""
    work = target.with_name(f"{target.name}.part")
    make_folder(work)
    with disk(work):
        handle = os.open(work, os.O_RDONLY)
    try:
        _lock(handle, target)
        try:
            shutil.rmtree(work / "content", ignore_errors=True)  # of a process that was killed
            yield work
        finally:
            if not _has_bytes(work):
                shutil.rmtree(work, ignore_errors=True)
    finally:
        os.close(handle)


def _lock(handle: int, target: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DataError(f"one download at a time may fill {target}, but another is running") from error
    except OSError:
        pass  # some network file systems lock no folders


def _from_any(
    sources: tuple[Source, ...], work: Path, wanted: Collection, patience: Patience, watch: Watch
) -> tuple[Source, Path]:
    """The first source that can be had, and the folder with its files, unchecked."""
    failures: list[str] = []
    for number, source in enumerate(sources, 1):
        try:
            return source, _content(source, work, wanted, patience, watch)
        except (Refused, Unreachable) as error:
            if isinstance(error, Unreachable) and _has_bytes(work):
                # Half of a source is worth more than the beginning of the next.
                raise DataError(f"{error}; what has arrived is kept: rerun the command to resume") from error
            if len(sources) == 1:
                raise
            failures.append(str(error))
            if number < len(sources):
                watch.note(f"{error}; trying {sources[number].place}")
    raise DataError(f"{wanted.name} must be had from one of {len(sources)} places, but: {'; '.join(failures)}")


def _has_bytes(work: Path) -> bool:
    return any(path.stat().st_size for path in work.rglob("*") if path.is_file() and path.suffix != ".state")


def _content(source: Source, work: Path, wanted: Collection, patience: Patience, watch: Watch) -> Path:
    content = work / "content"
    if source.is_archive and source.is_local:
        _unpack(Path(source.place), content, wanted, watch)
    elif source.is_archive:
        archive = work / f"{wanted.folder}.zip"
        fetch(source.place, archive, ZIP, patience=patience, watch=watch)
        try:
            _check_hash(archive, source)
            _unpack(archive, content, wanted, watch)
        except Refused as error:
            Part(archive, source.place).discard()  # else the next call would find it again
            raise Refused(str(error).replace(str(archive), source.place)) from error
    elif source.is_local:
        _gather(Path(source.place), content, wanted)
    else:
        _gather(_fetch_files(source.place, work / "files", wanted, patience, watch), content, wanted)
    return content


def _check_hash(archive: Path, source: Source) -> None:
    if not source.sha256:
        return
    with archive.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != source.sha256:
        raise Refused(
            f"{source.place} must have the SHA-256 {source.sha256[:12]}.., but what came has {found[:12]}..; "
            "if it is a newer version, name it with --url"
        )


def _unpack(archive: Path, content: Path, wanted: Collection, watch: Watch) -> None:
    try:
        unpack(archive, content, wanted.key, watch=watch)
    except BaseException:
        shutil.rmtree(content, ignore_errors=True)
        raise


def _fetch_files(base: str, folder: Path, wanted: Collection, patience: Patience, watch: Watch) -> Path:
    make_folder(folder)
    for stem in wanted.required:
        fetch(url_of(base, f"{stem}.json"), folder / f"{stem}.json", JSON, patience=patience, watch=watch)
    for stem in [*wanted.optional, *wanted.more(folder)]:
        try:
            fetch(url_of(base, f"{stem}.json"), folder / f"{stem}.json", JSON, patience=patience, watch=watch)
        except Refused as error:
            watch.note(f"{error}; going on without it")
    return folder


def _gather(folder: Path, content: Path, wanted: Collection) -> None:
    """Links, or copies where links cannot be, the files that belong to the collection."""
    files = [find_json(folder, stem) for stem in wanted.required]
    for stem in [*wanted.optional, *wanted.more(folder)]:
        with contextlib.suppress(DataError):
            files.append(find_json(folder, stem))
    with disk(content):
        content.mkdir()
        for file in files:
            try:
                os.link(os.path.realpath(file), content / file.name)
            except OSError:
                check_room(content, file.stat().st_size, str(file))
                shutil.copyfile(file, content / file.name)


def _place(content: Path, target: Path, note: dict[str, object]) -> None:
    files = {
        str(path.relative_to(content)): path.stat().st_size for path in sorted(content.rglob("*")) if path.is_file()
    }
    write_json(content / MARKER, note | {"files": files}, indent=1)
    with disk(target):
        os.rename(content, target)  # takes the place of an empty folder too
