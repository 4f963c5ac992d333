"""Reading and writing of files, plain or gzip, such that a crash never leaves half a file.

A writer fills a temporary file in the folder of the target and renames it at the end, so that a reader sees either the
old file or the new one. Only regular files are replaced: streams, such as standard output, are written to. Every
failure of the file system becomes a one-line `DataError`.
"""

import contextlib
import csv
import glob
import gzip
import io
import json
import os
import secrets
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from dre_jax.data.streams import check_stream, is_stream, kind_of, open_stream
from dre_jax.errors import DataError


def location(path: Path, space: str | None = None, dataset: str | None = None) -> str:
    """Returns the start of a message about a part of a file.

    >>> location(Path("d.json"), "svm", "wine")
    "d.json: space 'svm', dataset 'wine'"
    """
    parts = [f"{word} {name!r}" for word, name in (("space", space), ("dataset", dataset)) if name is not None]
    return f"{path}: {', '.join(parts)}" if parts else str(path)


def find_json(folder: str | os.PathLike[str], name: str) -> Path:
    """The path of `name`.json in `folder`, or of `name`.json.gz when only that exists.

    Raises `DataError` when the folder or both files are missing.
    """
    folder = Path(folder)
    # os.path answers false where pathlib would raise: inside a folder that must not be entered.
    if not os.path.isdir(folder):
        problem = "is a file" if os.path.exists(folder) else "does not exist"
        raise DataError(f"the data must be a folder, but {folder} {problem}")
    path = existing_json(folder, name)
    if path is None:
        raise DataError(f"{folder} must hold {name}.json or {name}.json.gz, but has neither")
    return path


def existing_json(folder: str | os.PathLike[str], name: str) -> Path | None:
    """Returns the path as `find_json` does, or None."""
    paths = (Path(folder, f"{name}.json"), Path(folder, f"{name}.json.gz"))
    return next((path for path in paths if os.path.isfile(path)), None)


@contextlib.contextmanager
def open_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file's bytes, decompressed when its name ends in `.gz`.

    Raises `DataError` when it cannot be opened, and for errors while the caller reads inside the `with`.
    """
    path = Path(path)
    try:
        # GzipFile has every method of BinaryIO but does not declare it.
        with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {_reason(error)}") from error


def parse_json(text: bytes, where: str, convert: Callable[[dict[str, Any]], Any] = lambda value: value) -> Any:
    """A JSON text as Python objects; NaN and Infinity are read, so that a later check can name the row.

    `where` starts the message, and `convert` is applied to every object. Raises `DataError` for text that is not UTF-8
    or not JSON, and for a key that an object holds twice.

    >>> parse_json(b'{"X": [[0.5]], "y": [NaN]}', "d.json")
    {'X': [[0.5]], 'y': [nan]}
    """
    try:
        return json.loads(text.decode("utf-8-sig"), object_pairs_hook=lambda pairs: convert(_unique(pairs, where)))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 text at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: not valid JSON at position {error.pos}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not readable as JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{where}: a key must occur once, but {twice!r} occurs {names.count(twice)} times")
    return table


def read_json(path: str | os.PathLike[str], convert: Callable[[dict[str, Any]], Any] = lambda value: value) -> Any:
    """A whole JSON file, plain or gzip. Raises `DataError`; see `open_binary` and `parse_json`."""
    path = Path(path)
    with open_binary(path) as stream:
        text = stream.read()
    if not text.strip():
        raise DataError(f"{path}: the file is empty")
    return parse_json(text, str(path), convert)


def read_text(path: str | os.PathLike[str]) -> str:
    """Returns a whole UTF-8 file, plain or gzip. Raises `DataError` if it cannot be read."""
    with open_binary(path) as stream:
        content = stream.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}") from error


def read_csv(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """The non-empty rows of a CSV file, UTF-8, plain or gzip, each with the number of its last line.

    Raises `DataError` for a file that cannot be read, and for a row with another number of cells than the first.
    """
    path = Path(path)
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    width = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            width = len(cells) if width is None else width
            if len(cells) != width:
                raise DataError(f"{path}, line {reader.line_num}: a row must have {width} cells, but has {len(cells)}")
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not readable as CSV: {error}") from error


@contextlib.contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary stream that becomes `path` when the `with` block ends well, and nothing at all otherwise.

    A name that ends in `.gz` is compressed, with no time stamp: the same content gives the same bytes. A symbolic link
    stays one; the file that it leads to is written. A stream (`is_stream`) gets the content as it is written. Raises
    `DataError` when the folder is missing, not writable or full, and for a folder or a block device; the old file is
    then as it was.
    """
    path = Path(path)
    with _write_errors(path):
        check_kind(path)
        with open_stream(path) if is_stream(path) else _replacement(path) as raw:
            is_packed = path.suffix == ".gz"
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) if is_packed else contextlib.nullcontext(raw) as stream:
                yield cast(BinaryIO, stream)


@contextlib.contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    path = Path(os.path.realpath(path)) if os.path.islink(path) else path
    temporary = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        with temporary.open("xb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())  # otherwise a power cut may keep the rename and lose the content
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def check_target(path: str | os.PathLike[str], *, streams: bool = True) -> None:
    """Raises `DataError` unless `path` can be written; for a check before the work.

    Without ``streams``, an existing `path` must be a regular file, because it is read as well.
    """
    path = Path(path)
    with _write_errors(path):
        check_kind(path)
        if not is_stream(path):
            tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent).close()
        elif streams:
            check_stream(path)
        else:
            raise DataError(f"{path} must be a regular file, as it is read as well, but is {kind_of(path)}")


def check_kind(path: Path) -> None:
    """Raises `DataError` for a path that no file may replace and that is not a stream."""
    kind = kind_of(path)
    if kind is not None and not is_stream(path):
        raise DataError(f"{path} must be a regular file, a pipe or a device, but is {kind}")


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be written: {_reason(error)}") from error


def stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """A stamp that changes whenever an `atomic_writer` has written a file; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def remove_left_over(path: str | os.PathLike[str]) -> None:
    """Removes the temporary files of killed writers of `path`. Call it when no other process is writing the file."""
    path = Path(os.path.realpath(path))
    for remainder in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            remainder.unlink()


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raises `DataError` unless a folder can be made, or be written where it is there; makes none."""
    folder = Path(os.path.abspath(path))
    with _write_errors(Path(path)):
        while not os.path.lexists(folder):
            folder = folder.parent
        tempfile.TemporaryFile(dir=folder).close()


def make_folder(path: str | os.PathLike[str]) -> None:
    """Makes a folder and those above it, if they are missing. Raises `DataError` where that cannot be done."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path} cannot be made a folder: {_reason(error)}") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes UTF-8 text at once or not at all; see `atomic_writer`."""
    with atomic_writer(path) as stream:
        stream.write(text.encode("utf-8"))


def append_text(path: str | os.PathLike[str], text: str) -> None:
    """Appends UTF-8 text to a file. Raises `DataError` where that cannot be done; a part of it may then be written."""
    with _write_errors(Path(path)), open(path, "a", encoding="utf-8") as file:
        file.write(text)


def write_json(path: str | os.PathLike[str], obj: Any, *, indent: int | None = None) -> None:
    """Writes an object as JSON at once or not at all; NumPy and JAX arrays and scalars become lists and numbers.

    Raises `DataError` for values that JSON cannot hold (NaN, infinity, other objects) and as `atomic_writer` does.
    """
    try:
        text = json.dumps(obj, indent=indent, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} cannot be written: {error}") from error
    write_text(path, text + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON holds no {type(value).__name__}")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
