"""The description of a method that has a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dre_jax.errors import ConfigError
from dre_jax.methods.settings import Settings, configure
from dre_jax.model import ModelConfig
from dre_jax.search.method import Method

FITTING_OPTIONS = {"epochs": ("fitting.steps",), "learning_rate": ("fitting.learning_rate",)}
TUNING_OPTIONS = {"epochs": ("tuning.steps",), "learning_rate": ("tuning.learning_rate",)}
FINE_TUNING_OPTIONS = {"epochs": ("fine_tuning.epochs",), "learning_rate": ("fine_tuning.learning_rate",)}
ACQUISITION_OPTION = {"acquisition": ("acquisition.kind",)}
_OF_A_CHECKPOINT = ("model", "training", "transfer")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method with a name: one of the one protocol (`default`), or a host method (`host`)."""

    name: str
    summary: str
    paper: str
    transfer: bool = False
    """Learns from past tasks."""
    default: Method | None = None
    """Its configuration where a user sets nothing; None for a host method."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Short names of settings, and the fields of the configuration that each stands for."""
    host: type | None = None
    """A host method's class; the arguments of its constructor are its settings."""
    reads_checkpoints: bool = False
    """Starts from what `dre-jax meta-train` wrote, where it is given, instead of being fitted anew."""
    library: str = "JAX"
    """JAX, in the compiled loop; or the library that a host method calls."""
    extra: str | None = None
    """The extra to install, if the core packages are not enough."""

    def make(self, settings: Settings | None = None, *, model: ModelConfig | None = None) -> Method:
        """The method of the one protocol.

        Args:
          settings: short names and dotted fields, with values or their text.
          model: of the checkpoint that the method reads, which decides on its training too.

        Raises:
          ConfigError: for a setting that it does not take, or a value that is wrong.
          TypeError: for a host method.
        """
        if self.default is None:
            raise TypeError(f"{self.name} is a host method")
        own: Any = self.default
        fields = self._fields(settings or {})
        if model is not None:
            fixed = [path for path in fields if path.partition(".")[0] in _OF_A_CHECKPOINT]
            if fixed:
                rule = f"{self.name}: the checkpoint decides on {', '.join(_OF_A_CHECKPOINT)}"
                raise ConfigError(f"{rule}, but got {', '.join(fixed)}")
            own = dataclasses.replace(own, model=model)
        made: Method = configure(own, fields, name=self.name, short=self.options)
        return made

    def _fields(self, settings: Settings) -> dict[str, object]:
        """Settings by dotted field, short names resolved."""
        found: dict[str, object] = {}
        by: dict[str, str] = {}
        for given, value in settings.items():
            for path in self.options.get(given, (given,)):
                if path in found:
                    raise ConfigError(f"{self.name}: {path} must be set once, but got {by[path]} and {given}")
                found[path], by[path] = value, given
        return found
