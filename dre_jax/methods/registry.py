"""Methods by name: those of the library, of entry points, and of files and modules that a name points to.

Each module of `_MODULES` describes its methods in a tuple `ENTRIES`. An installed package describes one by an entry
point of the group `dre_jax.methods`, whose object is an `Entry` of the entry point's name.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from dre_jax.errors import ConfigError, DataWarning, MissingExtraError
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.entries.entry import Entry, check_entry
from dre_jax.methods.entries.settings import did_you_mean
from dre_jax.methods.foreign import is_foreign, label_of, load_method, summary_of
from dre_jax.runtime.plug_ins import load_plug_in, plug_ins
from dre_jax.search.host import HostMethod
from dre_jax.search.method import Method, learns_from_past

ENTRY_POINTS = "dre_jax.methods"
"""Group of entry points."""

_MODULES = (
    "dre.variants",
    "hedged_prior.hedged_prior",
    "baselines.random_search",
    "baselines.gp",
    "hedged_prior.gp_mixture",
    "baselines.dngo",
    "baselines.bohamiann",
    "baselines.deep_ensemble",
    "baselines.dkgp",
    "baselines.metis",
    "baselines.hebo",
    "baselines.fsbo",
    "baselines.rgpe",
    "baselines.tst",
    "baselines.gcp",
    "baselines.empirical_gp",
    "baselines.rf",
    "baselines.smac",
    "baselines.tpe",
)


METHODS: dict[str, Entry] = {}
"""The methods of the library and those that `register` has added, by name."""

ALIASES = {"recommended": "hedged-prior"}
"""Further names: that of the method recommended where there are past tasks (docs/why/recommended.md)."""


def register(entry: Entry) -> None:
    """Adds a method to `METHODS`, so that it has a name everywhere, in checkpoints too.

    A name with a file or module replaces the method of this name: the file may have been edited since it was loaded.

    Raises:
      ConfigError: if the name belongs to another method, or for what `check_entry` refuses.

    Example:
      >>> register(find("random"))  # the same again: nothing changes
    """
    is_taken = METHODS.get(entry.name, entry) != entry and not is_foreign(entry.name)
    if entry.name in ALIASES or is_taken:
        raise ConfigError(f"a method must have a name of its own, but {entry.name!r} is registered already")
    check_entry(entry)
    METHODS[entry.name] = entry


def register_foreign(entry: Entry) -> None:
    """Registers a method of a file or module, so that its checkpoints can be read; others have a name already."""
    if is_foreign(entry.name):
        register(entry)


for _module in _MODULES:
    for _entry in import_module(f"dre_jax.methods.{_module}").ENTRIES:
        register(_entry)


def real_name(name: str) -> str:
    """Returns the method's own name for an alias, and any other name unchanged."""
    return ALIASES.get(name, name)


def registered_entry(name: str) -> Entry | None:
    """Returns the entry of a registered method, an alias, or an entry point; None for any other name.

    Raises `ConfigError` for an entry point that cannot be loaded, or is not an `Entry` of its name.
    """
    name = real_name(name)
    if name in METHODS or is_foreign(name):
        return METHODS.get(name)
    entry = load_plug_in(ENTRY_POINTS, name, Entry, "method")
    if entry is None:
        return None
    if entry.name != name:
        raise ConfigError(f"method {name}: the entry point must be the Entry of {name!r}, but is {entry!r}")
    check_entry(entry)
    return entry


def companion_of(name: str) -> str | None:
    """Returns the method that meta-training leaves beside a registered one, see `Entry.companion`; None without one."""
    entry = registered_entry(name)
    return None if entry is None else entry.companion


def known_entries() -> Iterator[Entry]:
    """Yields the registered methods, then those of entry points; warns of each that cannot be loaded."""
    yield from METHODS.values()
    for name in sorted(plug_ins(ENTRY_POINTS).keys() - METHODS):
        try:
            entry = registered_entry(name)
        except (ConfigError, MissingExtraError) as error:
            warnings.warn(str(error), DataWarning, stacklevel=2)
        else:
            if entry is not None:
                yield entry


def find(name: str) -> Entry:
    """Returns the method of a name, an alias, an entry point, `package.module:Name` or `path/to/file.py:Name`.

    `Name` is a class with `fit` and `acquire` or with `observe_and_suggest`, an object with `fit` and `acquire`, or an
    `Entry`. The entry has the name `module:Name` or, without the folder, `file.py:Name`. It is not registered.

    Raises:
      ConfigError: for an unknown name; the message has the known names. For a method that cannot be loaded, or declares
        less than the loops need.

    Example:
      >>> find("random").transfer
      False
    """
    if is_foreign(name):
        target, label = load_method(name), label_of(name)
        entry = replace(target, name=label) if isinstance(target, Entry) else entry_for(target, label)
        check_entry(entry)
        return entry
    known_entry = registered_entry(name)
    if known_entry is None:
        names = (*METHODS, *ALIASES, *plug_ins(ENTRY_POINTS))
        raise ConfigError(f"the method must be one of {', '.join(names)}, but got {name!r}{did_you_mean(name, names)}")
    return known_entry


def entry_of(method: Method) -> Entry:
    """Returns the entry of a method that is an object: that of its class, with the object as the default.

    The entry of a class that is neither registered nor an entry point has the name `module:Class`. Raises `ConfigError`
    for what `check_entry` refuses.
    """
    kind = type(method)
    alike = _entries_of(kind)
    name = alike[0].name if alike else f"{kind.__module__}:{kind.__qualname__}"
    entry = next((entry for entry in alike if entry.default == method), None) or entry_for(method, name)
    check_entry(entry)
    return entry


def _entries_of(kind: type) -> list[Entry]:
    """Returns the entries of a class: registered ones, else those of entry points of the package of the class."""
    alike = [entry for entry in METHODS.values() if type(entry.default) is kind]
    package = kind.__module__.partition(".")[0]
    if alike or package == "dre_jax":
        return alike
    for name, points in plug_ins(ENTRY_POINTS).items():
        if points[0].module.partition(".")[0] == package:
            with contextlib.suppress(ConfigError, MissingExtraError):  # another method of the package
                entry = registered_entry(name)
                alike += [entry] if entry is not None and type(entry.default) is kind else []
    return alike


def entry_for(method: Method, name: str) -> Entry:
    """Returns an entry for an object: like that of its class, if that is registered or an entry point.

    A method with a ranking ensemble that learns from past tasks, a field `model` that is a `ModelConfig`, can start
    from a checkpoint.
    """
    for entry in _entries_of(type(method)):
        learns = learns_from_past(method, entry.transfer)
        reads = learns and entry.reads_checkpoints
        return replace(entry, name=name, default=method, transfer=learns, reads_checkpoints=reads)
    has_ensemble, learns = isinstance(getattr(method, "model", None), ModelConfig), learns_from_past(method)
    free = vars(method).keys() - {"model", "training", "transfer"} if has_ensemble else ()
    return Entry(
        name=name,
        summary=summary_of(type(method)),
        paper="",
        transfer=learns,
        default=method,
        reads_checkpoints=has_ensemble and learns,
        free=tuple(sorted(free)),
    )


def host_of(method: object) -> type[HostMethod] | None:
    """Returns the class of a host method: a name, or a class; None for methods of the one protocol and other objects.

    Raises `ConfigError` as `find` does, for `package.module:Name` or `path/to/file.py:Name`; for a class without
    `observe_and_suggest`.
    """
    if isinstance(method, str):
        entry = find(method) if is_foreign(method) else registered_entry(method)
        return None if entry is None else entry.host
    if isinstance(method, type) and not callable(getattr(method, "observe_and_suggest", None)):
        raise ConfigError(f"method {method}: the class must have a method observe_and_suggest, but has none")
    return method if isinstance(method, type) else None
