"""The shared part of the scripts: errors in one line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dre_jax.errors import DreError


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Ends the program with status 2 and one line on standard error where the library refuses what it was given."""
    try:
        yield
    except DreError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
