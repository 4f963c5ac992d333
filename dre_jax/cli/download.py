"""``dre-jax download``: HPO-B's data, checked and in place."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from dre_jax.cli import options
from dre_jax.hpob.download.download import download as download_and_check
from dre_jax.runtime.progress import Bar


def download(
    what: Annotated[str, typer.Argument(help="hpo-b, or hpo-b-surrogates (for the continuous benchmark).")],
    url: Annotated[
        str | None,
        typer.Option(help="URL or path of a .zip, or of a folder of loose files. Default: the authors' archive."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to create. Default: hpob-data or saved-surrogates.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Download HPO-B's data, and write them to --out once they are verified (a URL needs the extra `download`)."""
    bars: dict[str, Bar] = {}
    with contextlib.ExitStack() as stack:

        def show(label: str, done: int, total: int) -> None:
            """Opens the bar of a label if another is shown, and moves it to so many bytes."""
            megabytes = -(-done // 10**6)
            if label not in bars:
                stack.close()
                bars.clear()
                bar = Bar(f"{label} (MB)", -(-total // 10**6), quiet=quiet, start=megabytes)
                bars[label] = stack.enter_context(bar)
            bars[label].advance_to(megabytes)

        summary = download_and_check(what, out, url=url, progress=show)
    print(summary)
