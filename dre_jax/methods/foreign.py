"""Methods from outside of the library: `package.module:Name` or `path/to/file.py:Name`, and objects."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_type_hints

from dre_jax.data.files import stamp
from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.methods.entries.entry import Entry
from dre_jax.methods.entries.settings import Settings, convert, unknown_setting
from dre_jax.search.method import Method

_STAMP = "__dre_jax_stamp__"


def is_foreign(name: str) -> bool:
    """Returns whether a method's name means a class outside of the library.

    Example:
      >>> is_foreign("peers/gp.py:GP"), is_foreign("dre")
      (True, False)
    """
    return ":" in name or name.endswith(".py")


def label_of(name: str) -> str:
    """Returns a name without the folder of its file: the same file is the same method in any folder.

    Example:
      >>> label_of("peers/gp.py:GP"), label_of("peers.gp:GP")
      ('gp.py:GP', 'peers.gp:GP')
    """
    file, colon, attribute = name.rpartition(":")
    return f"{Path(file).name}:{attribute}" if colon and file.endswith(".py") else name


def load_method(name: str) -> Entry | Method:
    """Returns the method that a name points to: an `Entry`, one for a host method's class, or an object.

    A class with `fit` and `acquire` is constructed without arguments. Raises `ConfigError` if it cannot be imported, or
    has neither `observe_and_suggest` nor `fit` and `acquire`, and `MissingExtraError` as raised by the module, which
    says itself what to install.
    """
    target = import_object(name)
    if isinstance(target, Entry):
        return target
    if isinstance(target, type) and callable(getattr(target, "observe_and_suggest", None)):
        return Entry(name=name, summary=summary_of(target), paper="", host=target, library="Python")
    if not any(callable(getattr(target, function, None)) for function in ("fit", "acquire")):
        raise ConfigError(f"method {name}: must have observe_and_suggest, or fit and acquire, but has neither")
    if not isinstance(target, type):
        return cast(Method, target)
    try:
        return cast(Method, target())
    except TypeError as error:
        raise ConfigError(f"method {name}: every field of the class must have a default, but {error}") from error


def summary_of(kind: type) -> str:
    """Returns the first line of the docstring of a class."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def arguments_of(host_class: type, settings: Settings, name: str) -> dict[str, Any]:
    """Returns a host method's arguments, read by their annotations, or as literals of Python without annotations.

    Raises `ConfigError` for an argument that the constructor does not take, or a value of another type.
    """
    if not settings:
        return {}
    parameters = arguments_by_name(host_class)
    for setting in settings:
        if setting not in parameters:
            raise unknown_setting(setting, parameters, name)
    try:
        kinds = get_type_hints(host_class.__init__)  # type: ignore[misc]
    except Exception:  # annotations of other people's code may name what only their type checker knows
        kinds = {}
    return {field: convert(kinds.get(field, Any), value, f"{name}: {field}") for field, value in settings.items()}


def arguments_by_name(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Returns the arguments of a class or function that can be passed by name, other than private ones."""
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    return {name: entry for name, entry in parameters.items() if entry.kind in by_name and not name.startswith("_")}


def import_object(name: str, what: str = "method") -> Any:
    """Returns the object of a name, `package.module:Name` or `path/to/file.py:Name`.

    Raises `ConfigError`, whose message calls it ``what``, if it cannot be imported, and `MissingExtraError` as the
    module does.
    """
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise ConfigError(f"a {what} from outside is package.module:Name or path/to/file.py:Name, but got {name!r}")
    try:
        if module_name.endswith(".py"):
            module = _load_file(Path(module_name))
        else:
            _search("")
            module = importlib.import_module(module_name)
    except (ConfigError, MissingExtraError):
        raise
    except Exception as error:  # whatever the module does while it is imported
        raise ConfigError(f"{what} {name}: cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        names = [key for key, value in vars(module).items() if callable(value)]
        raise ConfigError(f"{module_name} must hold a {what} {attribute!r}, but has {', '.join(names) or 'none'}")
    return getattr(module, attribute)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"the file must exist, but {path} does not")
    path = path.resolve()
    _search(str(path.parent))
    # A name that no import can ask for: a file may be called like a module that it imports.
    name, version = f"dre_jax method {path}", stamp(path)
    if getattr(sys.modules.get(name), _STAMP, None) == version:
        return sys.modules[name]  # a class that is loaded twice would be two classes
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, _STAMP, version)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _search(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)
