"""What is said of a method that can be asked for by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from dre_jax.methods.options import Options
from dre_jax.search.method import Method


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method that can be asked for by name: one of the one protocol (`build`), or a host method (`host`)."""

    name: str
    summary: str
    paper: str
    transfer: bool
    """Learns from past tasks."""
    build: Callable[[Options], Method] | None = None
    """Makes it with what a user set; None for a host method."""
    host: str | None = None
    """A host method's class, `module:Class`, made without arguments."""
    reads_checkpoints: bool = False
    """Starts from what `dre-jax meta-train` wrote, where it is given, instead of being fitted anew."""
    library: str = "JAX"
    """What computes it: JAX, in the compiled loop; or the library that a host method calls."""
    extra: str | None = None
    """The extra to install, if the core packages are not enough."""

    def made(self, options: Options) -> Method:
        """The method of the one protocol. Raises `TypeError` for a host method."""
        if self.build is None:
            raise TypeError(f"{self.name} is a host method")
        return self.build(options)


def later(target: str) -> Callable[[Options], Method]:
    """A builder that imports its module only when it is called.

    Args:
      target: `module:function`, the module in `dre_jax.methods`.
    """
    module, _, name = target.partition(":")

    def build(options: Options) -> Method:
        found: Callable[[Options], Method] = getattr(importlib.import_module(f"dre_jax.methods.{module}"), name)
        return found(options)

    return build
