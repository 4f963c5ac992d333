"""Compiled programs that later processes load without tracing them again.

JAX's own cache keeps executables by the text of a program, so a process must trace and lower the program before it can
look: seconds for a suggestion. A program here is named by everything that its text depends on: the library's files,
versions, settings of JAX, the processor, the static arguments, and the shapes of the other arguments. Programs that
depend on anything else are not kept, such as arguments of foreign classes, or arrays of other devices than the first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import os
import pickle
import platform
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

from dre_jax.runtime.cache import without_cache
from dre_jax.runtime.devices import cores
from dre_jax.runtime.reports import report_progress

_PACKAGE = Path(__file__).parents[1]
_FOLDER = "programs"
_DEVICE = "jax_default_device"


_conditions: list[Callable[[], bool]] = []
"""Conditions under which the names of programs describe all that the programs depend on."""


def keep_while(condition: Callable[[], bool]) -> None:
    """Keeps programs only while a condition holds: that they contain no function from outside of the library.

    Only the name of such a function would be described, which stays where its file is edited.
    """
    _conditions.append(condition)


class _Entry(NamedTuple):
    program: Future[Callable[..., Any]]
    result: Any
    """Shapes of the program's results."""


class KeptPrograms:
    """The compiled programs of a function, in memory and in a folder.

    Programs of a function of any module outside of the library are not kept. With a ``purpose``, the subject of the
    program, a line on standard error says that it is compiled.
    """

    def __init__(self, jitted: Any, function: Callable[..., Any], static: tuple[str, ...], purpose: str = "") -> None:
        self._jitted, self._static, self._purpose = jitted, static, purpose
        self._names = tuple(inspect.signature(function).parameters)
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._is_known = self._name.startswith("dre_jax.") and "<locals>" not in self._name
        self._lock = threading.Lock()
        self.programs: dict[Any, _Entry] = {}
        """By static arguments, structure, shapes and settings."""

    def __call__(self, folder: Path, *args: Any, **kwargs: Any) -> Any:
        """Returns the value of the function; its program is from memory, the folder, or compiled and kept there.

        For shapes (`jax.ShapeDtypeStruct`) in place of arrays, returns the shapes of the value; another thread then
        compiles the program.
        """
        arguments = dict(zip(self._names, args, strict=False)) | kwargs
        static = {name: value for name, value in arguments.items() if name in self._static}
        dynamic = {name: value for name, value in arguments.items() if name not in static}
        leaves, structure = jax.tree.flatten(dynamic)
        is_ahead = any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)
        is_default = getattr(jax.config, _DEVICE) is None
        first = {jax.devices()[0]}
        if not self._is_known or not is_default or not all(_is_plain(leaf, first) for leaf in leaves):
            return self._jitted.eval_shape(*args, **kwargs) if is_ahead else self._jitted(*args, **kwargs)
        shapes = tuple((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves)
        key = (*static.items(), structure, shapes, _in_double_precision())
        with self._lock:
            if key not in self.programs:
                run = _compilers().submit if is_ahead else _run_now
                self.programs[key] = self._load(folder, static, dynamic, f"{structure} {[*map(str, shapes)]}", run)
            entry = self.programs[key]
        return entry.result if is_ahead else entry.program.result()(**dynamic)

    def _load(self, folder: Path, static: dict[str, Any], dynamic: dict[str, Any], form: str, run: _Run) -> _Entry:
        """Returns a program from the folder; else compiles it, and keeps it if a name can tell it from others."""
        path = None
        with contextlib.suppress(TypeError):
            text = f"{self._name} {describe(static)} {form}"
            is_described = " at 0x" not in text  # no object without a description
            if is_described and all(condition() for condition in _conditions):
                path = folder / _FOLDER / hashlib.sha256(f"{text} {_surroundings()}".encode()).hexdigest()
        if path is not None:
            with contextlib.suppress(Exception):  # absent, damaged, or of another machine or user: compiled again
                _check_owner(path)
                payload, out_structure, shapes = pickle.loads(path.read_bytes())
                result = jax.tree.unflatten(out_structure, map(_shape_of, shapes))
                _load_lapack()
                return _Entry(
                    run(self._deserialize, payload, out_structure, static, dynamic, _in_double_precision()), result
                )
            if self._purpose:
                report_progress(f"compiling {self._purpose}, which takes seconds and is kept for later processes")
        traced = self._jitted.trace(**static, **dynamic)
        shapes = [(output.shape, output.dtype, output.weak_type) for output in jax.tree.leaves(traced.out_info)]
        result = jax.tree.unflatten(jax.tree.structure(traced.out_info), map(_shape_of, shapes))
        return _Entry(run(_compile, traced.lower(), path, shapes), result)

    def _deserialize(
        self, payload: bytes, out_structure: Any, static: dict[str, Any], dynamic: dict[str, Any], in_double: bool
    ) -> Callable[..., Any]:
        """Returns the program of a file; compiles it if the file is of another machine or damaged."""
        first = jax.devices()[:1]  # where `_is_plain` has seen the arguments; the default is all
        in_structure = jax.tree.structure(((), dynamic))
        try:
            return serialize_executable.deserialize_and_load(
                payload, in_structure, out_structure, execution_devices=first
            )
        except Exception:
            with jax.enable_x64(in_double):  # a setting of a thread
                return self._jitted.lower(**static, **dynamic).compile()


_Run = Callable[..., Future[Callable[..., Any]]]


def _run_now(compute: Callable[..., Any], *args: Any) -> Future[Any]:
    """Returns the result as of another thread."""
    future: Future[Any] = Future()
    future.set_result(compute(*args))
    return future


@cache
def _compilers() -> ThreadPoolExecutor:
    """Returns the threads that compile: one a core, as XLA computes outside of Python's lock."""
    return ThreadPoolExecutor(cores(), "compile")


def _compile(lowered: Any, path: Path | None, shapes: list[Any]) -> Callable[..., Any]:
    """Returns the compiled program, which a file keeps with the shapes of its results."""
    calls = re.findall(r"custom_call @(\w+)", lowered.as_text())
    if path is None or any(not call.startswith("lapack_") for call in calls):
        return lowered.compile()  # a later process may not have loaded what it calls
    with without_cache:  # an executable that JAX has loaded cannot be kept again
        compiled = lowered.compile()
    with contextlib.suppress(Exception):  # structures that cannot be pickled, or a full disk: kept only in memory
        payload, _, out_structure = serialize_executable.serialize(compiled)
        _write(path, pickle.dumps((payload, out_structure, shapes)))
    return compiled


def _shape_of(form: tuple[tuple[int, ...], Any, bool]) -> jax.ShapeDtypeStruct:
    shape, dtype, is_weak = form
    return jax.ShapeDtypeStruct(shape, dtype, weak_type=is_weak)


@cache
def _load_lapack() -> None:
    """Loads the functions that factorise, which JAX does when it lowers a program that calls them."""
    jax.jit(jnp.linalg.cholesky).lower(np.eye(1, dtype=np.float32))


def describe(value: Any) -> str:
    """Returns a text that differs where values do.

    Raises:
      TypeError: for anything but numbers, texts, types of arrays, and collections and records of the library of these.

    Example:
      >>> describe((1, None, {"a": 2.5}))
      "(1, None, {'a': 2.5})"
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return repr(value)
    if kind in (tuple, list, frozenset):
        items = sorted(map(describe, value)) if kind is frozenset else map(describe, value)
        return f"({', '.join(items)})"
    if isinstance(value, Mapping) and kind is dict:
        return "{" + ", ".join(f"{describe(name)}: {describe(item)}" for name, item in value.items()) + "}"
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return str(np.dtype(value))
    fields = getattr(value, "_fields", None)
    if dataclasses.is_dataclass(value):
        fields = tuple(field.name for field in dataclasses.fields(value))
    if fields is None or kind.__module__.partition(".")[0] != "dre_jax":
        raise TypeError(f"no description of {kind.__name__}")
    return f"{kind.__module__}.{kind.__qualname__}{describe({name: getattr(value, name) for name in fields})}"


def _is_plain(leaf: Any, first: set[Any]) -> bool:
    """Returns whether an argument is an array of the host or of the first device, or its shape."""
    if isinstance(leaf, jax.Array):
        return leaf.devices() == first
    return isinstance(leaf, (np.ndarray, np.generic, jax.ShapeDtypeStruct))


def _in_double_precision() -> bool:
    return jax.dtypes.canonicalize_dtype(np.float64) == np.float64


def _surroundings() -> str:
    """Returns the dependencies of compiled programs, beside their functions and arguments."""
    settings = {name: value for name, value in jax.config.values.items() if "cache" not in name}
    return f"{_installation()} {sorted(settings.items())} {_in_double_precision()} {os.environ.get('XLA_FLAGS')}"


@cache
def _installation() -> str:
    """Returns the library's files, the versions of the libraries that compile, and the processor."""
    files = sorted(_PACKAGE.rglob("*.py"))
    state = [(str(file.relative_to(_PACKAGE)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    versions = [version(name) for name in ("jax", "jaxlib", "flax", "numpy")]
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    features = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
    return f"{state} {versions} {platform.machine()} {platform.processor()} {sorted(features)} {jax.device_count()}"


def _check_owner(path: Path) -> None:
    """Raises `PermissionError` for a file of another user, since a program is code."""
    if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
        raise PermissionError(path)


def _write(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)
