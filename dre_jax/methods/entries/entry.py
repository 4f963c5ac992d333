"""The description of a method that has a name."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

from dre_jax.errors import ConfigError
from dre_jax.methods.entries.settings import Settings, configure, leaves
from dre_jax.search.method import OPTIONAL_PROTOCOLS, HistoryMethod, Method, capabilities_of

SHORT = {
    "epochs": ("fitting.steps", "tuning.steps", "fine_tuning.epochs"),
    "learning_rate": (*(f"{part}.learning_rate" for part in ("fitting", "tuning", "fine_tuning")), "chain.step_size"),
    "acquisition": ("acquisition.kind",),
}
"""Short names of settings, and the fields that each stands for where a method has them."""


def _functions(protocol: type) -> dict[str, Any]:
    """Returns the functions that a protocol adds to those that it extends, by name."""
    return {name: function for name, function in vars(protocol).items() if not name.startswith("_")}


_FUNCTIONS = {
    name: function for protocol in (Method, *OPTIONAL_PROTOCOLS) for name, function in _functions(protocol).items()
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method with a name: one of the one protocol (`default`), or a host method (`host`)."""

    name: str
    """Name on the command line."""
    summary: str
    """Half a line of description."""
    paper: str
    """Authors and year."""
    transfer: bool = False
    """Learns from past tasks."""
    default: Method | None = None
    """Its configuration without settings of a user; None for a host method."""
    short: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: SHORT)
    """Short names of settings that it takes, each with alternative fields."""
    host: type | None = None
    """A host method's class; the arguments of its constructor are its settings."""
    reads_checkpoints: bool = False
    """Starts from the ranking ensemble of any checkpoint; a method that learns starts from its own in any case."""
    companion: str | None = None
    """A method with a ranking ensemble that meta-training leaves in the same folder, for whoever evaluates both."""
    free: tuple[str, ...] = ()
    """Fields of the configuration that do not affect what it learns: they may differ from a checkpoint's."""
    renamed: Mapping[str, str | None] = field(default_factory=dict)
    """Dotted fields of older checkpoints' configurations, and their names now; None for what is no longer a field."""
    renamed_arrays: Mapping[str, str | None] = field(default_factory=dict)
    """Paths of arrays of older checkpoints, and their paths now; None for what is no longer read."""
    library: str = "JAX"
    """JAX, in the compiled loop; or the library that a host method calls."""
    extra: str | None = None
    """The extra to install, if the core packages are not enough."""

    @cached_property
    def options(self) -> dict[str, tuple[str, ...]]:
        """Short names of settings, and the fields of the configuration that each stands for."""
        fields = dict(leaves(self.default)) if self.default is not None else {}
        there = {short: tuple(path for path in paths if path in fields) for short, paths in self.short.items()}
        return {short: paths for short, paths in there.items() if paths}

    def variant(self, name: str, summary: str, settings: Settings, **fields: Any) -> Entry:
        """Returns the entry of this method with other settings by default.

        Args:
          name: of the variant.
          summary: half a line of description.
          settings: values, by dotted field, that differ from this method's.
          **fields: other fields of the entry that differ.

        Raises:
          ConfigError: for a setting that the method does not take, or a value that is wrong.

        Example:
          >>> from dre_jax.methods import find
          >>> find("dre").variant("dre-short", "ten epochs", {"fine_tuning.epochs": 10}).default.fine_tuning.epochs
          10
        """
        default = configure(self.default, settings, name=name)
        return replace(self, name=name, summary=summary, default=default, **fields)

    def make(self, settings: Settings | None = None, *, learned: Method | None = None) -> Method:
        """Returns the configured method of the one protocol.

        Args:
          settings: short names and dotted fields, with values or their text.
          learned: the configuration of a checkpoint, in place of the default. It decides on all fields that affect what
            was learned.

        Raises:
          ConfigError: for a setting that the method does not take, a wrong value, or settings with which
            `check_capabilities` refuses it.
          TypeError: for a host method.
        """
        configuration: Any = self.default if learned is None else learned
        if configuration is None:
            raise TypeError(f"{self.name} is a host method")
        if not isinstance(settings or {}, Mapping):
            raise ConfigError(f"{self.name}: settings must map fields to values, but got {settings!r}")
        fields = self._fields(settings or {})
        method: Method = configure(configuration, fields, name=self.name, short=self.options)
        check_capabilities(method, self.name)
        fixed_paths = [path for path in fields if not any(f"{path}.".startswith(f"{free}.") for free in self.free)]
        if learned is not None and fixed_paths:
            rule = f"{self.name}: the checkpoint decides on all fields but {', '.join(self.free) or 'none'}"
            raise ConfigError(f"{rule}, but got {', '.join(fixed_paths)}")
        return method

    def restore(self, content: Mapping[str, Any]) -> Method:
        """Returns the configuration of a checkpoint from ``content``, its JSON (`config_to_json`).

        Raises `ConfigError` for a field that the method does not have, or a value that is wrong.
        """
        fields = copy.deepcopy(dict(content))
        for old, new in self.renamed.items():
            value = _pop(fields, *old.split("."))
            if value is not None and new is not None:
                new_part, new_field = new.split(".")
                fields.setdefault(new_part, {})[new_field] = value
        method: Any = configure(self.default, fields, name=self.name)
        return cast(Method, method)

    def _fields(self, settings: Settings) -> dict[str, object]:
        """Returns settings by dotted field, with short names resolved."""
        fields: dict[str, object] = {}
        names: dict[str, str] = {}
        for name, value in settings.items():
            for path in self.options.get(name, (name,)):
                if path in fields:
                    raise ConfigError(f"{self.name}: {path} must be set once, but got {names[path]} and {name}")
                fields[path], names[path] = value, name
        return fields


def _pop(fields: dict[str, Any], *path: str) -> Any:
    """Removes a field of nested dictionaries, and returns its value; None if there is none."""
    for part in path[:-1]:
        fields = fields.get(part, {})
    return fields.pop(path[-1], None)


def check_entry(entry: Entry) -> None:
    """Checks that an entry has a method of the one protocol or a host method, with the functions that the loops call.

    Raises `ConfigError` if a function of a protocol is missing, if a capability is neither true nor false, or if the
    method is not a frozen dataclass with hashable fields.

    Example:
      >>> from dre_jax.methods import find
      >>> check_entry(find("gp"))
    """
    if (entry.default is None) == (entry.host is None):
        number = "neither" if entry.host is None else "both"
        raise ConfigError(f"method {entry.name}: an entry must have either default= or host=, but has {number}")
    if entry.host is not None:
        if not isinstance(entry.host, type):
            raise ConfigError(f"method {entry.name}: host= must be a class, but is {entry.host!r}")
        if not callable(getattr(entry.host, "observe_and_suggest", None)):
            raise ConfigError(f"method {entry.name}: the class must have a method observe_and_suggest, but has none")
        return
    method, name = entry.default, entry.name
    if isinstance(method, type):
        raise ConfigError(f"method {name}: default= must be an object, but is the class {method.__name__}")
    for function in ("fit", "acquire"):
        _check_function(method, function, f"method {name}: must")
    check_capabilities(method, name)
    if not is_dataclass(method):
        raise ConfigError(f"method {name}: must be a frozen dataclass, but {type(method).__name__} is no dataclass")
    try:
        hash(method)
    except TypeError as error:
        raise ConfigError(f"method {name}: must be a frozen dataclass with hashable fields, but has {error}") from error
    paths = [f"{path}." for path, _ in leaves(method)]
    unknown = [free for free in entry.free if not any(path.startswith(f"{free}.") for path in paths)]
    if unknown:
        raise ConfigError(f"method {entry.name}: free= must name fields of the method, but has {', '.join(unknown)}")


def check_capabilities(method: Any, name: str) -> None:
    """Checks the capabilities and the optional functions of a method, which may depend on its configuration.

    Raises `ConfigError` if a capability is neither true nor false, or if a method has some functions of a protocol
    (`OPTIONAL_PROTOCOLS`) and not all.
    """
    capabilities = capabilities_of(method)
    for attribute in fields(capabilities):
        declared = getattr(capabilities, attribute.name)
        if not isinstance(declared, bool) and not (declared is None and attribute.default is None):
            raise ConfigError(f"method {name}: {attribute.name} must be True or False, but is {declared!r}")
    for protocol in OPTIONAL_PROTOCOLS:
        present = [name for name in _functions(protocol) if getattr(method, name, None) is not None]
        for function in [name for base in protocol.__mro__ for name in _functions(base)] if present else ():
            _check_function(method, function, f"method {name}: has {present[0]}, so it must")
    if capabilities.slotwise_fit and not isinstance(method, HistoryMethod):
        _check_function(method, "fit_history", f"method {name}: slotwise_fit is True, so it must")


def _check_function(method: Any, label: str, rule: str) -> None:
    """Raises `ConfigError` if a method lacks a function of a protocol."""
    function = getattr(method, label, None)
    if not callable(function):
        _, *arguments = inspect.signature(_FUNCTIONS[label]).parameters
        state = "has none" if function is None else f"{label} is {function!r}"
        raise ConfigError(f"{rule} have a function {label}({', '.join(arguments)}), but {state}")
