"""Optuna's log, which has a line for every study and trial."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def optuna_logs_at(level: str) -> Iterator[None]:
    """Limits Optuna's log to messages of a level, "WARNING" or "ERROR", and restores its verbosity at the end."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(getattr(optuna.logging, level))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
