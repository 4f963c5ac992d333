"""Detection of processes that were forked after JAX had started: a fork copies no threads, so JAX waits forever."""

from __future__ import annotations

import os
import sys

from dre_jax.errors import ConfigError

_jax_is_lost = False


def _after_fork() -> None:
    global _jax_is_lost
    is_initialized = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", lambda: False)
    _jax_is_lost = _jax_is_lost or is_initialized()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_not_forked() -> None:
    """Raises `ConfigError` in a process that was forked from one in which JAX had already computed."""
    if _jax_is_lost:
        rule = "a process that computes must not be forked from one in which JAX has computed, where it would hang"
        raise ConfigError(f'{rule}: start it with multiprocessing.get_context("spawn"), or a loky or Dask worker')
