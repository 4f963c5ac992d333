"""A folder of study files, and of the past studies that they learn from; nothing outside of it is read or written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dre_jax.data.files import make_folder, stamp
from dre_jax.errors import DataError
from dre_jax.runtime.locks import file_in_use
from dre_jax.space.space import Space
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.study.past_files import surrogate_from_files
from dre_jax.tuning.study.study_file import Origin, Stamp, Study, read_study
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import value_or_mapping

_PATIENCE = 60.0
"""Seconds to wait for a study that another process uses: longer than a suggestion that compiles."""
_HEAD = 64
"""Bytes at the start of a file that show whether it holds a study."""


class StudyFolder:
    """Studies by name: `svc` is the file `svc.json` of the folder, and `runs/svc` one of a folder in it."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Makes the folder if it is missing. Raises `DataError` if it cannot be made, or is a file."""
        make_folder(Path(root))
        self._root = Path(os.path.realpath(root))
        self._loaded: dict[Path, tuple[Stamp | None, Optimizer]] = {}

    def path(self, name: str) -> Path:
        """Returns the path of a file or folder, which lies in this folder even after symbolic links.

        Raises `DataError` for an absolute name, one with `..`, one that a link leads out of the folder, and for hidden
        files, such as locks.
        """
        parts = PurePosixPath(name.replace("\\", "/")).parts
        path = Path(self._root, *parts)
        is_plain = bool(parts) and "\0" not in name and not any(part.startswith((".", "/")) for part in parts)
        if not is_plain or not self._is_inside(path):
            raise DataError(f"a name must be that of a file in the server's folder, but got {name!r}")
        return Path(os.path.realpath(path))

    def names(self) -> list[str]:
        """Returns the names of all studies in the folder."""
        names = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            paths = (Path(folder, file) for file in sorted(files) if file.endswith(".json"))
            paths = (path for path in paths if self._is_inside(path) and _holds_study(path))
            names += [path.relative_to(self._root).with_suffix("").as_posix() for path in paths]
        return names

    def read(self, name: str) -> Study:
        """Returns the content of a study's file. Raises `DataError` if there is none, or it is damaged."""
        path = self._study_path(name)
        if not path.exists():
            known = ", ".join(self.names()) or "none"
            raise DataError(f"a study must be one of those in the folder, {known}, but got {name!r}")
        return read_study(path)

    def load(self, name: str) -> Optimizer:
        """Returns a study, to look at it. Raises `DataError` as `read`, and for a surrogate outside of the folder."""
        path = self._study_path(name)
        known_stamp, study = self._loaded.get(path, (None, None))
        if study is None or known_stamp != stamp(path):
            known_stamp, origins = stamp(path), self.read(name).origins
            surrogates = {
                objective: None if origin is None else self._surrogate_of(name, origin)
                for objective, origin in origins.items()
            }
            study = Optimizer.load(path, value_or_mapping(surrogates))
            self._loaded[path] = known_stamp, study
        return study

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[Optimizer]:
        """Yields a study that no other process uses, and saves it if the block ends without an error.

        Raises `DataError` as `load`, and if another process uses the file for longer than a minute.
        """
        path = self._study_path(name)
        with file_in_use(path, _PATIENCE):
            study = self.load(name)
            self._loaded.pop(path)  # an error below leaves a study that is not that of the file
            yield study
            study.save(path)
            self._loaded[path] = stamp(path), study

    @contextlib.contextmanager
    def creating(self, name: str) -> Iterator[None]:
        """Reserves the name of a new study for the block, which calls `save_new`. Raises `DataError` if it is taken."""
        path = self._study_path(name)
        make_folder(path.parent)
        with file_in_use(path, _PATIENCE):
            if path.exists():
                raise DataError(f"the name of a new study must not be taken, but {name!r} is")
            yield

    def save_new(self, name: str, study: Optimizer) -> None:
        """Writes the file of a new study."""
        study.save(self._study_path(name))

    def surrogate(self, name: str, space: Space, past: Sequence[str], direction: str) -> Surrogate:
        """Returns the surrogate of past studies for a new study, whose checkpoint is in the folder.

        Args:
          name: of the new study, beside whose file the checkpoint of a new surrogate is written.
          space: of the new study.
          past: names of past studies in the folder; or a single name, of a checkpoint or of a table in CSV.
          direction: of all studies.

        Raises:
          DataError: as `surrogate_from_files`.
        """
        paths = {source: self.path(source) for source in past}
        if not paths[past[0]].exists():  # the name of a study
            paths = {source: self._study_path(source) for source in past}
        for path in paths.values():
            self._check_links(path)
        return surrogate_from_files(paths, space, direction, self.path(f"{name}.past.npz"))

    def _surrogate_of(self, study: str, origin: Origin) -> Surrogate:
        """Returns the surrogate that a study's file names, which anybody may have written."""
        if origin.path is None or not self._is_inside(Path(origin.path)):
            rule = "the surrogate of a study must be in the server's folder"
            raise DataError(f"{rule}, but that of {study!r} is in {origin.path or 'no file'}")
        checkpoint = Path(os.path.realpath(origin.path))
        self._check_links(checkpoint)
        return Surrogate.load(checkpoint)

    def _check_links(self, path: Path) -> None:
        """Raises `DataError` if a link in a checkpoint leads out of the folder."""
        for inner in path.rglob("*"):
            if not self._is_inside(inner):
                raise DataError(f"{inner} must not lead out of the server's folder, but does")

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._root)

    def _study_path(self, name: str) -> Path:
        return self.path(f"{name.removesuffix('.json')}.json")


def _holds_study(path: Path) -> bool:
    """Returns whether a file starts as `Optimizer.save` writes it; tables of a folder may be large."""
    try:
        with path.open("rb") as file:
            return b'"dre_jax_study"' in file.read(_HEAD)
    except OSError:
        return False
