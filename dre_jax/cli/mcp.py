"""``dre-jax mcp``: serves studies to agents, by the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer


def mcp(
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the study files and past studies; made if it is missing.")
    ],
) -> None:
    """Serve studies to an agent, by the Model Context Protocol over standard input and output.

    The agent creates studies, asks for configurations, tells their values, and reads and plots results. All files are
    in DIR. A client starts this command itself.
    """
    from dre_jax.errors import import_extra

    import_extra("mcp.server.mcpserver", "mcp", "mcp")
    from dre_jax.tuning.mcp.server import serve

    serve(folder)
