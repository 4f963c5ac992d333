"""Readers of past evaluations by name: the sources of `dre-jax meta-train`, beside tables in HPO-B's layout.

A reader is a function of a source, as text, and of the search space. It returns past tasks. Its other arguments are
options of the command: `direction`, `task` and `value`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.methods.entries.settings import did_you_mean
from dre_jax.methods.foreign import arguments_by_name, import_object, is_foreign
from dre_jax.tuning.past.optuna_studies import from_studies
from dre_jax.tuning.past.tables import from_csv
from dre_jax.tuning.past.tasks import Past

PastReader = Callable[..., Past]
"""``(source, space, **options)``"""


READERS: dict[str, PastReader] = {"optuna": from_studies, "csv": from_csv}
"""Readers by name; `dre_jax.tuning.surrogates` adds that of a saved surrogate."""


def find_reader(name: str) -> PastReader:
    """Returns the reader of a name, `package.module:function` or `path/to/file.py:function`.

    Raises `ConfigError` for an unknown name, or a function that cannot be imported.

    Example:
      >>> find_reader("csv") is from_csv
      True
    """
    if is_foreign(name):
        reader: PastReader = import_object(name, "reader")
        return reader
    if name not in READERS:
        rule = f"past tasks are read by one of {', '.join(READERS)} or file.py:function"
        raise ConfigError(f"{rule}, but got {name!r}{did_you_mean(name, READERS)}")
    return READERS[name]


def check_options(reader: Callable[..., Any], label: str, options: Mapping[str, Any]) -> None:
    """Raises `ConfigError` for an option that a reader does not take, or a required option that is missing."""
    further = dict([*arguments_by_name(reader).items()][2:])  # after the source and the space
    for name in options:
        if name not in further:
            takers = [f"--from-{known}" for known, function in READERS.items() if name in arguments_by_name(function)]
            raise ConfigError(f"--{name} needs {' or '.join(takers) or 'another reader'}, but got {label}")
    for name, parameter in further.items():
        if parameter.default is parameter.empty and name not in options:
            raise ConfigError(f"{label} takes --{name}, but got none")
