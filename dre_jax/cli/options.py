"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[Path, typer.Option(help="Folder of meta-datasets in HPO-B's v3 layout.", show_default=False)]
Spaces = Annotated[list[str] | None, typer.Option("--space", help="Search space; may be repeated. Default: all.")]
_FIELDS = "Any field of the method's configuration; `dre-jax methods NAME` lists them. May be repeated."
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help=_FIELDS)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same results.", min=0, max=2**32 - 1)]
Columns = Annotated[
    str, typer.Option(help="HPO-B's columns: published, or fixed, with logarithms that HPO-B left out.")
]
SpaceFile = Annotated[Path, typer.Option("--space", metavar="FILE", help="Search space, JSON.", show_default=False)]
Surrogate = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Checkpoint folder of `meta-train`. Default: none.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print results and errors only, no progress.")]
Devices = Annotated[int | None, typer.Option(min=1, help="Devices per process. Default: all; on a CPU, one per core.")]
Distributed = Annotated[
    bool, typer.Option("--distributed", help="Join the other processes of the cluster: Slurm, Open MPI, Cloud TPU.")
]
Coordinator = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Join processes by hand: address of the first one."),
]
Processes = Annotated[int | None, typer.Option(min=1, help="Number of processes, with --coordinator.")]
ProcessId = Annotated[int | None, typer.Option(min=0, help="Index of this process, from 0, with --coordinator.")]
