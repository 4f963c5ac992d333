"""The errors and the warning a user can meet.

Every message is one line that states the rule and then the value, so that the command line can print it as it is.

>>> raise DataError("a task must hold at least one row, but dataset 'wine' is empty")
Traceback (most recent call last):
    ...
dre_jax.errors.DataError: a task must hold at least one row, but dataset 'wine' is empty
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "DataWarning",
    "DeviceError",
    "DreError",
    "MethodError",
    "MissingExtraError",
]


class DreError(Exception):
    r"""Base of every error that dre_jax raises on purpose; a line break in the message becomes a space.

    >>> str(DreError("two\n  lines"))
    'two lines'
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(line.strip() for line in message.splitlines()))


class DataError(DreError):
    """A file or a table breaks a rule: missing, unreadable, malformed, or with values that cannot be used."""


class ConfigError(DreError):
    """An argument or a configuration value is not allowed."""


class CheckpointError(DreError):
    """A checkpoint is missing, incomplete, or does not fit the data or the configuration at hand."""


class DeviceError(DreError):
    """A device has stopped, so that this process cannot compute with it any longer."""


class MethodError(DreError):
    """A host method, a class from outside of the library, failed or gave an invalid answer; the message names it."""


class MissingExtraError(DreError, ImportError):
    """An optional package is needed; the message names the extra that installs it.

    >>> str(MissingExtraError("optuna", "optuna"))
    "this needs the package 'optuna': pip install 'dre_jax[optuna]'"
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}: pip install 'dre_jax[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        # Worker processes pickle their errors, and the default would hand the message alone to `__init__`.
        return type(self), (self.package, self.extra)


def import_extra(module: str, package: str, extra: str) -> Any:
    """Returns a module of a package that an extra installs. Raises `MissingExtraError` without the package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


class DataWarning(UserWarning):
    """A warning about data that can be used, but that its owner should check."""
