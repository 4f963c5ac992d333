"""Methods by name: those of the library, of entry points, and of files and modules that a name points to.

Each module of `_MODULES` describes its methods in a tuple `ENTRIES`. An installed package describes one by an entry
point of the group `dre_jax.methods`, whose object is an `Entry` of the entry point's name.
"""

import warnings
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points

from dre_jax.errors import ConfigError, DataWarning, MissingExtraError
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.entries.entry import Entry, check_entry
from dre_jax.methods.entries.settings import did_you_mean
from dre_jax.methods.foreign import is_foreign, label_of, load_method, summary_of
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
"""All methods that are registered, by name."""

ALIASES = {"recommended": "hedged-prior"}
"""Further names: that of the method recommended where there are past tasks (docs/why/recommended.md)."""


def register(entry: Entry) -> None:
    """Adds a method to `METHODS`, so that it has a name everywhere, in checkpoints too.

    Raises:
      ConfigError: if the name belongs to another method, or for what `check_entry` refuses.
    """
    if entry.name in ALIASES or METHODS.get(entry.name, entry) != entry:
        raise ConfigError(f"a method must have a name of its own, but {entry.name!r} is registered already")
    _add(entry)


def _add(entry: Entry) -> Entry:
    """Checks and adds an entry, or replaces the one of its name: a file may have been edited since it was loaded."""
    check_entry(entry)
    METHODS[entry.name] = entry
    return entry


for _module in _MODULES:
    for _entry in import_module(f"dre_jax.methods.{_module}").ENTRIES:
        _add(_entry)


def real_name(name: str) -> str:
    """Returns the method's own name for an alias, and any other name unchanged."""
    return ALIASES.get(name, name)


def registered_entry(name: str) -> Entry | None:
    """Returns the entry of a registered method, an alias, or an entry point; None for any other name.

    Raises `ConfigError` for an entry point that cannot be loaded, or is not an `Entry` of its name.
    """
    name = real_name(name)
    if name not in METHODS and not is_foreign(name):
        for point in entry_points(group=ENTRY_POINTS, name=name):
            rule = f"method {name}: entry point {point.value}"
            try:
                target = point.load()
            except MissingExtraError:
                raise
            except Exception as error:  # whatever the module does while it is imported
                raise ConfigError(f"{rule} cannot be loaded: {type(error).__name__}: {error}") from error
            if not isinstance(target, Entry) or target.name != name:
                raise ConfigError(f"{rule} must be the Entry of {name!r}, but is {target!r}")
            register(target)
    return METHODS.get(name)


def load_entry_points() -> None:
    """Registers the methods of all entry points; warns of each that cannot be loaded."""
    for name in sorted(entry_points(group=ENTRY_POINTS).names):
        try:
            registered_entry(name)
        except (ConfigError, MissingExtraError) as error:
            warnings.warn(str(error), DataWarning, stacklevel=2)


def find(name: str) -> Entry:
    """Returns the method of a name, an alias, an entry point, `package.module:Name` or `path/to/file.py:Name`.

    `Name` is a class with `fit` and `acquire` or with `observe_and_suggest`, an object with `fit` and `acquire`, or an
    `Entry`. It is registered under `module:Name` or, without the folder, `file.py:Name`.

    Raises:
      ConfigError: for an unknown name; the message has the known names. For a method that cannot be loaded, or declares
        less than the loops need.

    Example:
      >>> find("random").transfer
      False
    """
    if is_foreign(name):
        target, label = load_method(name), label_of(name)
        return _add(replace(target, name=label) if isinstance(target, Entry) else entry_for(target, label))
    entry = registered_entry(name)
    if entry is None:
        names = (*METHODS, *ALIASES, *entry_points(group=ENTRY_POINTS).names)
        raise ConfigError(f"the method must be one of {', '.join(names)}, but got {name!r}{did_you_mean(name, names)}")
    return entry


def entry_of(method: Method) -> Entry:
    """Returns the entry of a method that is an object: the registered one of its class, with the object as the default.

    A class that no registered method has is registered as `module:Class`. Raises `ConfigError` for what `check_entry`
    refuses.
    """
    alike = [entry for entry in METHODS.values() if type(entry.default) is type(method)]
    if not alike:
        return _add(entry_for(method, f"{type(method).__module__}:{type(method).__qualname__}"))
    entry = next((entry for entry in alike if entry.default == method), None) or entry_for(method, alike[0].name)
    check_entry(entry)
    return entry


def entry_for(method: Method, name: str) -> Entry:
    """Returns an entry for an object: like that of the registered method of its class, if any.

    A method with a ranking ensemble that learns from past tasks, a field `model` that is a `ModelConfig`, can start
    from a checkpoint.
    """
    for entry in METHODS.values():
        if type(entry.default) is type(method):
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
