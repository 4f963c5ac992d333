"""Where things that were compiled are kept from one process to the next."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "DRE_JAX_CACHE"


def folder() -> Path | None:
    """``$DRE_JAX_CACHE``, by default ``~/.cache/dre_jax``; None where that is empty or cannot be written to."""
    name = os.environ.get(VARIABLE, str(Path.home() / ".cache" / "dre_jax"))
    if not name:
        return None
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return path if os.access(path, os.W_OK) else None
