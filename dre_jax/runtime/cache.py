"""The persistent cache of compiled programs and libraries, and how suggestions run: with it, and on one thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from dre_jax.runtime.threads import SharedContext, one_thread

VARIABLE = "DRE_JAX_CACHE"
_ENABLED = "jax_enable_compilation_cache"
_FOLDER, _LEAST_SECONDS = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"


def folder() -> Path | None:
    """``$DRE_JAX_CACHE``, by default ``~/.cache/dre_jax``; None if it is empty or cannot be written to.

    Also None without a home: a container may run under a user id that the system does not know.
    """
    name = os.environ.get(VARIABLE)
    if name == "":
        return None
    try:
        path = Path.home() / ".cache" / "dre_jax" if name is None else Path(name)
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # Path.home raises a RuntimeError
        return None
    return path if os.access(path, os.W_OK) else None


def keep_programs() -> None:
    """Enables the persistent cache of JAX for all programs that this process compiles from now on.

    Nothing changes where JAX has a cache of its own already.
    """
    _set(_cache_settings())


@contextlib.contextmanager
def keep_programs_within() -> Iterator[None]:
    """Enables the persistent cache inside the block; other programs of the process keep JAX's settings."""
    settings = _cache_settings()
    before = {name: getattr(jax.config, name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(before)


@contextlib.contextmanager
def _suggestion_runtime() -> Iterator[None]:
    with keep_programs_within(), one_thread:
        yield


suggestion_runtime = SharedContext(_suggestion_runtime)
"""Context in which JAX caches compiled programs and a factorisation on a CPU uses one thread.

The model that is tuned may use the same cores: with more threads, a suggestion from 200 trials took 30 s, not 1.3 s.
"""


def enabled_folder() -> Path | None:
    """Returns the folder of JAX's cache, also if the user enabled it; None while it is disabled."""
    path = getattr(jax.config, _FOLDER)
    is_enabled = without_cache.is_entered_or(lambda: getattr(jax.config, _ENABLED))
    return Path(path) if path and is_enabled else None


@contextlib.contextmanager
def _disable() -> Iterator[None]:
    _set({_ENABLED: False})
    try:
        yield
    finally:
        _set({_ENABLED: True})


without_cache = SharedContext(_disable)
"""Context in which JAX neither reads nor writes its enabled cache."""


def _cache_settings() -> dict[str, Any]:
    """Returns the settings of JAX to change; empty if the user has set a cache or turned it off."""
    # `jax.config.read` refuses the settings that have a context manager.
    path = None if getattr(jax.config, _FOLDER) else folder()
    if path is None:
        return {}
    # By default, JAX keeps only programs that take a second to compile: one or two of a suggestion's twenty.
    least = {} if _LEAST_SECONDS.upper() in os.environ else {_LEAST_SECONDS: 0.0}
    return {_FOLDER: str(path), **least}


def _set(settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    if settings:
        compilation_cache.reset_cache()  # JAX looks for a cache only once
