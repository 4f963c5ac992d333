"""``dre-jax download``: HPO-B's data, checked and in place."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.cli import options
from dre_jax.runtime.progress import Bar


def download(
    what: Annotated[str, typer.Argument(help="hpo-b, or hpo-b-surrogates (for the continuous benchmark).")],
    url: Annotated[
        str | None,
        typer.Option(
            help="URL or path of a .zip, or of a folder of loose files. Default: the authors' addresses.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to create. Default: hpob-data or saved-surrogates.", show_default=False),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Fetch HPO-B and check it before it is put in place; rerun an interrupted download to resume it."""
    from dre_jax.hpob.download.download import download as fetch_and_check

    with Display(quiet=quiet) as display:
        line = fetch_and_check(what, out, url=url, watch=display)
    print(line)


class Display(contextlib.ExitStack):
    """A `dre_jax.hpob.download.fetch.Watch`: on standard error, one bar after the other in megabytes, and notes."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self._quiet = quiet
        self._bar: Bar | None = None
        self._what = ""

    def progress(self, what: str, done: int, total: int) -> None:
        """Opens the bar of `what` if another is shown, and moves it."""
        megabytes = -(-done // 10**6)
        if what != self._what or self._bar is None:
            self.close()
            self._what = what
            self._bar = self.enter_context(Bar(f"{what} (MB)", -(-total // 10**6), quiet=self._quiet, start=megabytes))
        self._bar.advance_to(megabytes)

    def note(self, text: str) -> None:
        """Closes the bar, so that the line stands alone."""
        self.close()
        self._bar = None
        if not self._quiet:
            print(f"dre-jax: {text}", file=sys.stderr, flush=True)
