"""``dre-jax download``: HPO-B's data, checked and in place."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Annotated, Self

import typer

from dre_jax.cli import options
from dre_jax.cli.progress import Bar


def download(
    what: Annotated[str, typer.Argument(help="hpo-b, or hpo-b-surrogates (for the continuous benchmark).")],
    url: Annotated[
        str | None,
        typer.Option(
            help="URL or path of a .zip, or of a folder of loose files. The authors' places by default.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to make. hpob-data or saved-surrogates by default.", show_default=False),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Fetch HPO-B and check it before it is put in place; an interrupted download goes on where it was."""
    from dre_jax.data.remote.download import download as fetch_and_check

    with Display(quiet=quiet) as display:
        line = fetch_and_check(what, out, url=url, watch=display)
    print(line)


class Display:
    """A `dre_jax.data.remote.fetch.Watch`: on standard error, one bar after the other in megabytes, and notes."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Bar | None = None
        self._what = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(kind, error, trace)

    def progress(self, what: str, done: int, total: int) -> None:
        """Opens the bar of `what` if another is shown, and moves it."""
        megabytes = -(-done // 10**6)
        if what != self._what or self._bar is None:
            self._close()
            self._what = what
            self._bar = Bar(f"{what} (MB)", -(-total // 10**6), quiet=self._quiet, start=megabytes)
            self._bar.__enter__()
        self._bar.advance_to(megabytes)

    def note(self, text: str) -> None:
        """Closes the bar, so that the line stands alone."""
        self._close()
        if not self._quiet:
            print(f"dre-jax: {text}", file=sys.stderr, flush=True)

    def _close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.__exit__(kind, error, trace)
