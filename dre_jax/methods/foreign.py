"""Host methods by name: a registered one's, `package.module:Class`, or `path/to/file.py:Class`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_type_hints

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.methods.settings import Settings, convert, unknown
from dre_jax.search.host import HostMethod

if TYPE_CHECKING:
    from dre_jax.methods.entry import Entry


def is_foreign(name: str) -> bool:
    """Returns whether a method's name means a class outside of the library.

    Example:
      >>> is_foreign("peers/gp.py:GP"), is_foreign("dre")
      (True, False)
    """
    return ":" in name or name.endswith(".py")


def host_of(method: object) -> str | type | None:
    """The class of a host method, or its name; None for methods of the one protocol and for what is no method.

    The one place that says which methods are such. A plan's method is a name, a class, or an object.

    Example:
      >>> host_of("peers/gp.py:GP"), host_of("dre"), host_of("tpe")
      ('peers/gp.py:GP', None, <class 'dre_jax.methods.baselines.tpe.TPE'>)
    """
    if isinstance(method, type):
        return method
    if not isinstance(method, str):
        return None
    if is_foreign(method):
        return method
    entry = _entry(method)
    return None if entry is None else entry.host


def library_of(method: object) -> str | None:
    """The library that a registered host method calls, None for all others."""
    entry = _entry(method) if isinstance(method, str) else None
    return None if entry is None or entry.host is None else entry.library


def _entry(name: str) -> Entry | None:
    from dre_jax.methods.registry import METHODS, real_name

    return METHODS.get(real_name(name))


def load_class(name: str | type) -> type[HostMethod]:
    """The class of a name, `package.module:Class` or `path/to/file.py:Class`; a class is its own.

    A module is looked for where Python looks, and in the current folder; beside a file, its own folder is looked
    through for what it imports, as when Python runs it.

    Raises:
      ConfigError: where it cannot be imported, or has no `observe_and_suggest`.
      MissingExtraError: as raised by the module, which says itself what to install.
    """
    found = name if isinstance(name, type) else _imported(name)
    if not callable(getattr(found, "observe_and_suggest", None)):
        raise ConfigError(f"method {name}: the class must have a method observe_and_suggest, but has none")
    return found


def arguments_of(found: type, settings: Settings, name: str) -> dict[str, Any]:
    """Arguments of a host method's constructor, read as their annotations say, or as literals of Python without one.

    Raises:
      ConfigError: for an argument that the constructor does not take, or a value of another type.

    Example:
      >>> from dre_jax.methods.baselines.tpe import TPE
      >>> arguments_of(TPE, {"startup": "20"}, "tpe")
      {'startup': 20}
    """
    if not settings:
        return {}
    known = constructor(found)
    for given in settings:
        if given not in known:
            raise unknown(given, known, name)
    try:
        kinds = get_type_hints(found.__init__)  # type: ignore[misc]
    except Exception:  # annotations of other people's code may name what only their type checker knows
        kinds = {}
    return {field: convert(kinds.get(field, Any), value, f"{name}: {field}") for field, value in settings.items()}


def constructor(found: type) -> dict[str, Parameter]:
    """Arguments of a class's constructor that can be given by name, other than private ones."""
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(found).parameters
    return {name: one for name, one in parameters.items() if one.kind in by_name and not name.startswith("_")}


def _imported(name: str) -> type:
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise ConfigError(f"a host method is package.module:Class or path/to/file.py:Class, but got {name!r}")
    try:
        module = _load_file(Path(module_name)) if module_name.endswith(".py") else _load_module(module_name)
    except (ConfigError, MissingExtraError):
        raise
    except Exception as error:  # whatever the module does while it is imported
        raise ConfigError(f"method {name}: cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise ConfigError(f"{module_name} must hold a class {attribute!r}, but has {', '.join(classes) or 'none'}")
    return found


def _load_module(name: str) -> ModuleType:
    _search("")
    return importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"a host method's file must exist, but {path} does not")
    path = path.resolve()
    _search(str(path.parent))
    # A name that no import can ask for: a file may be called like a module that it imports.
    spec = importlib.util.spec_from_file_location(f"dre_jax host method {path}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _search(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)
